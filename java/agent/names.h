// Names of classes and methods, as people write them. All of these call the virtual machine: never with a lock held.

#ifndef ISOTHERM_JAVA_NAMES_H
#define ISOTHERM_JAVA_NAMES_H

#include <jvmti.h>

#include <string>

namespace isotherm {

// `java.util.HashMap$Node`, `int[][]`; `?` where the machine does not tell.
std::string class_name(jvmtiEnv *jvmti, jclass klass);

// `java.util.HashMap.put`.
std::string method_name(jvmtiEnv *jvmti, jmethodID method);

// A line of a site's text: method, descriptor, bytecode index, file, line.
std::string frame_line(jvmtiEnv *jvmti, const jvmtiFrameInfo &frame);

}  // namespace isotherm

#endif
