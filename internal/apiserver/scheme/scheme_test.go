package scheme

import (
	"math/rand"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func newScheme(t *testing.T) (*runtime.Scheme, serializer.CodecFactory) {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return s, serializer.NewCodecFactory(s)
}

// Every kind survives encoding in its version and decoding to the hub, in every format, while others encode the same
// object: what the watch cache holds is read by all requests.
func TestRoundTrip(t *testing.T) {
	s, codecs := newScheme(t)
	random := rand.New(rand.NewSource(1))
	for _, version := range StorageVersions {
		hub := schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal}
		for kind, goType := range s.KnownTypes(version) {
			if !strings.HasPrefix(goType.PkgPath(), ownTypes) || strings.HasSuffix(kind, "List") || kind == "TokenRequest" {
				continue
			}
			for _, info := range codecs.SupportedMediaTypes() {
				t.Run(kind+"/"+info.MediaType, func(t *testing.T) {
					in, err := s.New(hub.WithKind(kind))
					if err != nil {
						t.Fatal(err)
					}
					if want := reflect.PointerTo(goType); reflect.TypeOf(in) != want {
						t.Fatalf("hub is %T, want %s", in, want)
					}
					meta := in.(metav1.ObjectMetaAccessor).GetObjectMeta()
					meta.SetName("name")
					meta.SetLabels(map[string]string{"key": string(rune('a' + random.Intn(26)))})
					// A defaulted object is a fixed point, so that defaults are no difference.
					s.Default(in)
					var all sync.WaitGroup
					for range 4 {
						mine := reflect.New(goType) // what lists and caches hand out: the struct, not what it points to
						mine.Elem().Set(reflect.ValueOf(in).Elem())
						all.Go(func() {
							shared := mine.Interface().(runtime.Object)
							data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, version), shared)
							if err != nil {
								t.Error(err)
								return
							}
							out, err := runtime.Decode(codecs.DecoderToVersion(info.Serializer, hub), data)
							if err != nil {
								t.Error(err)
								return
							}
							if got := out.GetObjectKind().GroupVersionKind(); !got.Empty() {
								t.Errorf("type of the hub is %s, want none", got)
							}
							if !apiequality.Semantic.DeepEqual(in, out) {
								t.Errorf("round trip (-want +got):\n%s", cmp.Diff(in, out))
							}
						})
					}
					all.Wait()
				})
			}
		}
	}
}

// What is read from the store has no type of its own, so that items of lists have none. It is read in whatever media type it was
// stored: that of an earlier server may be another.
func TestStorageCodec(t *testing.T) {
	_, codecs := newScheme(t)
	stored := map[string][]byte{
		runtime.ContentTypeJSON: []byte(`{"kind":"ExposureClass","apiVersion":"core.gardener.cloud/v1beta1","metadata":{"name":"a"},"handler":"h"}`),
	}
	object := func() *corev1beta1.ExposureClass {
		return &corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Handler: "h"}
	}
	types := []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}
	for _, mediaType := range types {
		codec, err := StorageCodec(codecs, mediaType)
		if err != nil {
			t.Fatal(err)
		}
		data, err := runtime.Encode(codec, object())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "core.gardener.cloud/v1beta1") {
			t.Errorf("stored %q, want the version of storage in it", data)
		}
		stored["new "+mediaType] = data
	}
	for _, mediaType := range types {
		codec, err := StorageCodec(codecs, mediaType)
		if err != nil {
			t.Fatal(err)
		}
		for from, data := range stored {
			t.Run(mediaType+" reads "+from, func(t *testing.T) {
				got := &corev1beta1.ExposureClass{}
				if err := runtime.DecodeInto(codec, data, got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(object(), got); diff != "" {
					t.Errorf("read (-want +got):\n%s", diff)
				}
			})
		}
	}
	if _, err := StorageCodec(codecs, "text/plain"); err == nil {
		t.Error("text/plain is taken")
	}
}

// ControllerDeployments are converted between their two versions.
func TestControllerDeploymentVersions(t *testing.T) {
	_, codecs := newScheme(t)
	codec := codecs.LegacyCodec(gardencorev1.SchemeGroupVersion)
	in := &gardencorev1.ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Helm: &gardencorev1.HelmControllerDeployment{RawChart: []byte("chart")},
		Resources: []gardencorev1.NamedResourceReference{{Name: "config", ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: "ConfigMap", Name: "c", APIVersion: "v1"}}},
	}
	data, err := runtime.Encode(codec, in)
	if err != nil {
		t.Fatal(err)
	}
	hub, err := runtime.Decode(codec, data)
	if err != nil {
		t.Fatal(err)
	}
	if old, ok := hub.(*corev1beta1.ControllerDeployment); !ok || old.Type != "helm" {
		t.Errorf("hub is %#v, want one of v1beta1 and of type helm", hub)
	}
	back, err := runtime.Encode(codec, hub)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(back)); diff != "" {
		t.Errorf("back in v1 (-want +got):\n%s", diff)
	}
}
