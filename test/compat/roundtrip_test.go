package compat

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"reflect"
	"sort"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/randfill"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// fuzzers fill what random bytes would make invalid: raw JSON stays JSON, and is read back as raw bytes.
func fuzzers(runtimeserializer.CodecFactory) []any {
	raw := func(c randfill.Continue) []byte {
		data, _ := json.Marshal(map[string]string{"key": strconv.Itoa(c.Intn(1000))})
		return data
	}
	return []any{
		func(r *runtime.RawExtension, c randfill.Continue) { *r = runtime.RawExtension{Raw: raw(c)} },
		func(j *apiextensionsv1.JSON, c randfill.Continue) { j.Raw = raw(c) },
		func(f *corev1beta1.MachineImageFlavor, c randfill.Continue) {
			f.Capabilities = corev1beta1.Capabilities{"architecture": {strconv.Itoa(c.Intn(10))}}
		},
		func(v *corev1beta1.CapabilityValues, c randfill.Continue) {
			*v = corev1beta1.CapabilityValues{"a", "b"}[:1+c.Intn(2)]
		},
	}
}

// TestRoundTrip fills every kind with random values and expects it back unchanged from JSON, YAML and protobuf.
func TestRoundTrip(t *testing.T) {
	const rounds = 20
	for _, g := range groups {
		scheme := runtime.NewScheme()
		if err := g.addToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		codecs := runtimeserializer.NewCodecFactory(scheme)
		fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, fuzzers), rand.NewSource(1), codecs)
		serializers := map[string]runtime.Serializer{
			"json": jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Strict: true}),
			"yaml": jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Yaml: true, Strict: true}),
		}
		if g.hasProtobuf() {
			serializers["protobuf"] = protobuf.NewSerializer(scheme, scheme)
		}

		var kinds []runtimeschema.GroupVersionKind
		for gvk, typ := range scheme.AllKnownTypes() {
			if typ.PkgPath() == apiPath+g.pkg {
				kinds = append(kinds, gvk)
			}
		}
		sort.Slice(kinds, func(i, j int) bool { return kinds[i].Kind < kinds[j].Kind })
		for _, gvk := range kinds {
			t.Run(g.pkg+"/"+gvk.Kind, func(t *testing.T) {
				for range rounds {
					obj, err := scheme.New(gvk)
					if err != nil {
						t.Fatal(err)
					}
					fill.Fill(obj)
					obj.GetObjectKind().SetGroupVersionKind(gvk)
					if copied := obj.DeepCopyObject(); !reflect.DeepEqual(obj, copied) {
						t.Fatalf("deep copy differs (-want +got):\n%s", cmp.Diff(obj, copied))
					}
					for format, serializer := range serializers {
						checkRoundTrip(t, format, serializer, gvk, obj)
					}
				}
			})
		}
	}
}

func checkRoundTrip(t *testing.T, format string, serializer runtime.Serializer, gvk runtimeschema.GroupVersionKind, obj runtime.Object) {
	t.Helper()
	first := &bytes.Buffer{}
	if err := serializer.Encode(obj, first); err != nil {
		t.Fatalf("%s: encode: %v", format, err)
	}
	decoded, _, err := serializer.Decode(first.Bytes(), &gvk, nil)
	if err != nil {
		t.Fatalf("%s: decode: %v\n%s", format, err, first)
	}
	decoded.GetObjectKind().SetGroupVersionKind(gvk)
	second := &bytes.Buffer{}
	if err := serializer.Encode(decoded, second); err != nil {
		t.Fatalf("%s: encode again: %v", format, err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) && format != "protobuf" {
		t.Fatalf("%s: the object changed (-want +got):\n%s", format, cmp.Diff(first.String(), second.String()))
	}
	// Protobuf does not distinguish empty lists and maps from missing ones, and maps have no order there.
	if !apiequality.Semantic.DeepEqual(obj, decoded) {
		t.Fatalf("%s: the object changed (-want +got):\n%s", format, cmp.Diff(obj, decoded))
	}
	again := decoded.DeepCopyObject()
	if !reflect.DeepEqual(again, decoded) {
		t.Fatalf("%s: deep copy differs (-want +got):\n%s", format, cmp.Diff(decoded, again))
	}
}
