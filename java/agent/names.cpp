#include "names.h"

namespace isotherm {

namespace {

// Text that the virtual machine allocated.
class Text {
public:
    explicit Text(jvmtiEnv *jvmti) : jvmti_(jvmti) {}
    Text(const Text &) = delete;
    Text &operator=(const Text &) = delete;
    ~Text() {
        if (bytes_) jvmti_->Deallocate(reinterpret_cast<unsigned char *>(bytes_));
    }
    char **target() { return &bytes_; }
    // Tabs and line ends separate fields and frames, so a name has none.
    std::string read() const {
        std::string text = bytes_ ? bytes_ : "?";
        for (char &byte : text) {
            if (static_cast<unsigned char>(byte) < ' ') byte = '?';
        }
        return text;
    }

private:
    jvmtiEnv *jvmti_;
    char *bytes_ = nullptr;
};

const char *primitive(char letter) {
    switch (letter) {
        case 'Z': return "boolean";
        case 'B': return "byte";
        case 'C': return "char";
        case 'S': return "short";
        case 'I': return "int";
        case 'J': return "long";
        case 'F': return "float";
        case 'D': return "double";
        default: return "?";
    }
}

std::string readable(const std::string &signature) {
    size_t dimensions = signature.find_first_not_of('[');
    if (dimensions == std::string::npos) return "?";
    std::string name;
    if (signature[dimensions] == 'L') {
        name = signature.substr(dimensions + 1);
        if (!name.empty() && name.back() == ';') name.pop_back();
        for (char &byte : name) {
            if (byte == '/') byte = '.';
        }
    } else {
        name = primitive(signature[dimensions]);
    }
    // The name of a hidden class, such as that of a lambda, ends in an address, which differs from run to run.
    size_t lambda = name.find("$$Lambda");
    if (lambda != std::string::npos) name.resize(lambda + sizeof "$$Lambda" - 1);
    while (dimensions-- > 0) name += "[]";
    return name;
}

std::string class_of_method(jvmtiEnv *jvmti, jmethodID method) {
    jclass klass = nullptr;
    if (jvmti->GetMethodDeclaringClass(method, &klass) != JVMTI_ERROR_NONE) return "?";
    return class_name(jvmti, klass);
}

int line_of(jvmtiEnv *jvmti, const jvmtiFrameInfo &frame) {
    jint count = 0;
    jvmtiLineNumberEntry *lines = nullptr;
    if (jvmti->GetLineNumberTable(frame.method, &count, &lines) != JVMTI_ERROR_NONE) return 0;
    // The entries are in no order: that with the greatest start at or before the index holds it.
    jlocation best = -1;
    int line = 0;
    for (jint i = 0; i < count; i++) {
        if (lines[i].start_location <= frame.location && lines[i].start_location > best) {
            best = lines[i].start_location;
            line = lines[i].line_number;
        }
    }
    jvmti->Deallocate(reinterpret_cast<unsigned char *>(lines));
    return line;
}

}  // namespace

std::string class_name(jvmtiEnv *jvmti, jclass klass) {
    Text signature(jvmti);
    if (jvmti->GetClassSignature(klass, signature.target(), nullptr) != JVMTI_ERROR_NONE) return "?";
    return readable(signature.read());
}

std::string method_name(jvmtiEnv *jvmti, jmethodID method) {
    Text name(jvmti);
    if (jvmti->GetMethodName(method, name.target(), nullptr, nullptr) != JVMTI_ERROR_NONE) return "?";
    return class_of_method(jvmti, method) + "." + name.read();
}

std::string frame_line(jvmtiEnv *jvmti, const jvmtiFrameInfo &frame) {
    Text name(jvmti), descriptor(jvmti), file(jvmti);
    if (jvmti->GetMethodName(frame.method, name.target(), descriptor.target(), nullptr) != JVMTI_ERROR_NONE) {
        return "?\t\t-1\t\t";
    }
    std::string line = class_of_method(jvmti, frame.method) + "." + name.read() + "\t" + descriptor.read();
    line += "\t" + std::to_string(frame.location) + "\t";
    int number = line_of(jvmti, frame);
    jclass klass = nullptr;
    bool has_file = number > 0 && jvmti->GetMethodDeclaringClass(frame.method, &klass) == JVMTI_ERROR_NONE &&
                    jvmti->GetSourceFileName(klass, file.target()) == JVMTI_ERROR_NONE;
    if (has_file) line += file.read() + "\t" + std::to_string(number);
    else line += "\t";
    return line;
}

}  // namespace isotherm
