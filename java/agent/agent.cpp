// The agent inside a Java virtual machine: it samples allocations (JEP 331) and publishes sites, live objects and compiled code
// in a file of the session directory, which `isotherm record` reads from outside (crates/observe/src/java). It takes no samples of
// accesses and installs no signal handler: the tool's timer does that.
//
//   java -agentpath:libisotherm-java.so=interval=524288,depth=4[,exact] ...
//
// Without ISOTHERM_SESSION in the environment, or where the virtual machine lacks what it needs, it does nothing, and the
// program runs as it does without it.

#include <jvmti.h>

#include <cstdlib>
#include <cstring>

#include "heap.h"
#include "hotspot.h"
#include "names.h"

using namespace isotherm;

namespace {

constexpr int DEPTH_MAX = 8;
// Tags hold the site in the lower bits, and the length in units of eight bytes above.
constexpr int TAG_SITE_BITS = 20;

struct Options {
    uint64_t interval = 512 << 10;
    int depth = 4;
    bool exact = false;
};

Heap *heap = nullptr;
Options options;

uint64_t number_after(const char *text, const char *key, uint64_t otherwise) {
    const char *found = text ? strstr(text, key) : nullptr;
    return found ? strtoull(found + strlen(key), nullptr, 10) : otherwise;
}

// The site of an allocation by this thread.
uint32_t site_of(jvmtiEnv *jvmti, jthread thread, jclass klass) {
    jvmtiFrameInfo frames[DEPTH_MAX];
    jint count = 0;
    if (jvmti->GetStackTrace(thread, 0, options.depth, frames, &count) != JVMTI_ERROR_NONE) count = 0;
    SiteKey key{class_name(jvmti, klass), {}};
    for (jint i = 0; i < count; i++) key.frames.emplace_back(frames[i].method, frames[i].location);
    uint32_t site = heap->find(key);
    if (site != Heap::NONE) return site;
    std::string text = key.klass;
    for (jint i = 0; i < count; i++) text += "\n" + frame_line(jvmti, frames[i]);
    if (count == 0) text += "\n(virtual machine)\t\t-1\t\t";
    return heap->add(key, text);
}

void delete_dead(JNIEnv *jni) {
    jweak dead[64];
    size_t count = heap->take_dead(dead, 64);
    for (size_t i = 0; i < count; i++) jni->DeleteWeakGlobalRef(dead[i]);
}

void JNICALL on_allocation(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object, jclass klass, jlong size) {
    uint32_t site = site_of(jvmti, thread, klass);
    if (site == Heap::NONE) return;
    uint64_t bytes = size > 0 ? uint64_t(size) : 0;
    Sample sample{site, bytes, heap->weight(bytes)};
    if (options.exact) {
        heap->allocated(sample, nullptr);
        jvmti->SetTag(object, jlong(bytes / 8) << TAG_SITE_BITS | jlong(site + 1));
        return;
    }
    delete_dead(jni);
    jweak reference = jni->NewWeakGlobalRef(object);
    if (!heap->allocated(sample, reference) && reference) jni->DeleteWeakGlobalRef(reference);
}

void count_access(jvmtiEnv *jvmti, jobject object) {
    jlong tag = 0;
    if (!object || jvmti->GetTag(object, &tag) != JVMTI_ERROR_NONE || tag == 0) return;
    heap->accessed(uint32_t(tag & ((1 << TAG_SITE_BITS) - 1)) - 1);
}

void JNICALL on_read(jvmtiEnv *jvmti, JNIEnv *, jthread, jmethodID, jlocation, jclass, jobject object, jfieldID) {
    count_access(jvmti, object);
}

void JNICALL on_write(jvmtiEnv *jvmti, JNIEnv *, jthread, jmethodID, jlocation, jclass, jobject object, jfieldID, char,
                      jvalue) {
    count_access(jvmti, object);
}

void JNICALL on_free(jvmtiEnv *, jlong tag) {
    heap->freed(uint32_t(tag & ((1 << TAG_SITE_BITS) - 1)) - 1, uint64_t(tag >> TAG_SITE_BITS) * 8);
}

void JNICALL on_collection_begin(jvmtiEnv *) { heap->collection_begins(); }

void JNICALL on_collection_end(jvmtiEnv *) { heap->collection_ends(); }

void JNICALL on_compiled(jvmtiEnv *jvmti, jmethodID method, jint bytes, const void *start, jint,
                         const jvmtiAddrLocationMap *, const void *) {
    heap->compiled(method, method_name(jvmti, method), reinterpret_cast<uint64_t>(start), uint64_t(bytes));
}

void JNICALL on_unloaded(jvmtiEnv *, jmethodID, const void *start) { heap->unloaded(reinterpret_cast<uint64_t>(start)); }

// Watches the fields of a class, where accesses are counted.
void JNICALL on_class(jvmtiEnv *jvmti, JNIEnv *, jthread, jclass klass) {
    jint count = 0;
    jfieldID *fields = nullptr;
    if (jvmti->GetClassFields(klass, &count, &fields) != JVMTI_ERROR_NONE) return;
    for (jint i = 0; i < count; i++) {
        jvmti->SetFieldAccessWatch(klass, fields[i]);
        jvmti->SetFieldModificationWatch(klass, fields[i]);
    }
    jvmti->Deallocate(reinterpret_cast<unsigned char *>(fields));
}

void find_heap(JNIEnv *jni) {
    jclass plain = jni->FindClass("java/lang/Object");
    jobject object = plain ? jni->AllocObject(plain) : nullptr;
    HeapRange range = heap_range();
    uint64_t address = object ? address_of(object) : 0;
    // Other collectors have references that are no plain addresses, or tell no range.
    if (address >= range.start && address < range.end) {
        heap->set_range(range.start, range.end, class_word_bytes(address));
    }
    if (object) jni->DeleteLocalRef(object);
    jni->ExceptionClear();
}

void enable(jvmtiEnv *jvmti, jvmtiEvent event) { jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr); }

void JNICALL on_start(jvmtiEnv *jvmti, JNIEnv *jni, jthread) {
    find_heap(jni);
    if (!options.exact) return;
    for (jvmtiEvent event : {JVMTI_EVENT_OBJECT_FREE, JVMTI_EVENT_FIELD_ACCESS, JVMTI_EVENT_FIELD_MODIFICATION}) {
        enable(jvmti, event);
    }
}

bool add_capabilities(jvmtiEnv *jvmti) {
    jvmtiCapabilities wanted{};
    wanted.can_generate_sampled_object_alloc_events = 1;
    wanted.can_generate_garbage_collection_events = 1;
    wanted.can_generate_compiled_method_load_events = 1;
    wanted.can_get_line_numbers = 1;
    wanted.can_get_source_file_name = 1;
    if (options.exact) {
        wanted.can_generate_field_access_events = 1;
        wanted.can_generate_field_modification_events = 1;
        wanted.can_generate_object_free_events = 1;
        wanted.can_tag_objects = 1;
    }
    return jvmti->AddCapabilities(&wanted) == JVMTI_ERROR_NONE;
}

void start(jvmtiEnv *jvmti) {
    jvmtiEventCallbacks callbacks{};
    callbacks.VMInit = on_start;
    callbacks.SampledObjectAlloc = on_allocation;
    callbacks.GarbageCollectionStart = on_collection_begin;
    callbacks.GarbageCollectionFinish = on_collection_end;
    callbacks.CompiledMethodLoad = on_compiled;
    callbacks.CompiledMethodUnload = on_unloaded;
    callbacks.ClassPrepare = on_class;
    callbacks.FieldAccess = on_read;
    callbacks.FieldModification = on_write;
    callbacks.ObjectFree = on_free;
    jvmti->SetEventCallbacks(&callbacks, sizeof callbacks);
    // Before any thread has a buffer for allocations: it would be used up at the interval of that time, which is none.
    jvmti->SetHeapSamplingInterval(options.exact ? 0 : jint(options.interval));
    enable(jvmti, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
    for (jvmtiEvent event : {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_GARBAGE_COLLECTION_START,
                             JVMTI_EVENT_GARBAGE_COLLECTION_FINISH, JVMTI_EVENT_COMPILED_METHOD_LOAD,
                             JVMTI_EVENT_COMPILED_METHOD_UNLOAD}) {
        enable(jvmti, event);
    }
    if (options.exact) enable(jvmti, JVMTI_EVENT_CLASS_PREPARE);
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *machine, char *text, void *) {
    const char *directory = getenv("ISOTHERM_SESSION");
    jvmtiEnv *jvmti = nullptr;
    options.interval = number_after(text, "interval=", options.interval);
    options.depth = int(number_after(text, "depth=", uint64_t(options.depth)));
    if (options.depth < 1 || options.depth > DEPTH_MAX) options.depth = DEPTH_MAX;
    options.exact = text && strstr(text, "exact");
    // Version 11 has sampled allocations.
    bool is_able = directory && machine->GetEnv(reinterpret_cast<void **>(&jvmti), JVMTI_VERSION_11) == JNI_OK &&
                   add_capabilities(jvmti);
    if (!is_able) return JNI_OK;
    // Never freed: callbacks may come until the process ends.
    Heap *made = new Heap;
    if (!made->create(directory, options.exact ? 0 : options.interval, options.exact)) return JNI_OK;
    heap = made;
    start(jvmti);
    return JNI_OK;
}
