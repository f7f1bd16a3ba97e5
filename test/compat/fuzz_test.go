package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	shootdnsrewritingv1alpha1 "gardener.cloud/gardener/api/config/admission/shootdnsrewriting/v1alpha1"
	shootresourcereservationv1alpha1 "gardener.cloud/gardener/api/config/admission/shootresourcereservation/v1alpha1"
	shoottolerationrestrictionv1alpha1 "gardener.cloud/gardener/api/config/admission/shoottolerationrestriction/v1alpha1"
	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/internal/validation/gardenlet"
)

// servedKinds are the kinds for fuzzing, in a fixed order, in all versions.
var servedKinds = func() (kinds []runtimeschema.GroupVersionKind) {
	for gvk, typ := range served.scheme.AllKnownTypes() {
		if strings.HasPrefix(typ.PkgPath(), apiPath) && gvk.Version != runtime.APIVersionInternal && !strings.HasSuffix(gvk.Kind, "List") {
			kinds = append(kinds, gvk)
		}
	}
	slices.SortFunc(kinds, func(a, b runtimeschema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}()

var fuzzCodecs = map[bool]serializer.CodecFactory{
	true: serializer.NewCodecFactory(served.scheme, serializer.EnableStrict), false: serializer.NewCodecFactory(served.scheme),
}

// seeds are objects of all kinds with random content.
func seeds(f *testing.F, add func(i int, obj runtime.Object)) {
	f.Helper()
	fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, fuzzers), rand.NewSource(1), fuzzCodecs[false]).NilChance(.2).NumElements(1, 2)
	for i, gvk := range servedKinds {
		obj, err := served.scheme.New(gvk)
		if err != nil {
			f.Fatal(err)
		}
		empty := obj.DeepCopyObject()
		fill.Fill(obj)
		for _, seed := range []runtime.Object{obj, empty} {
			if accessor, ok := seed.(metav1.Object); ok {
				accessor.SetManagedFields(nil)
			}
			seed.GetObjectKind().SetGroupVersionKind(gvk)
			add(i, seed)
		}
	}
}

// handle does with the body of a request what the API server does: decode, default, prepare and validate; then store it and read it
// again. Whatever the body is, that ends in an answer.
func handle(t *testing.T, data []byte, strict bool) {
	t.Helper()
	codecs := fuzzCodecs[strict]
	obj, err := runtime.Decode(codecs.UniversalDecoder(), data)
	if err != nil {
		return
	}
	s, ok := served.strategies[reflect.TypeOf(obj).Elem()]
	if !ok {
		return
	}
	ctx := asUser(context.Background(), metaOf(obj).Namespace)
	checkAll(ctx, s, obj, obj)
	empty := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	checkAll(ctx, s, obj, empty)
	checkAll(ctx, s, empty, obj)
	for _, info := range codecs.SupportedMediaTypes() {
		codec := codecs.LegacyCodec(servedVersions...)
		stored, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, runtimeschema.GroupVersions(servedVersions)), obj)
		if err != nil {
			continue // such as raw JSON that is none
		}
		if _, err := runtime.Decode(codec, stored); err != nil && !strict {
			t.Errorf("what is stored as %s cannot be read: %v\n%q", info.MediaType, err, stored)
		}
	}
}

// servedVersions are the versions that objects are stored in.
var servedVersions = func() (versions []runtimeschema.GroupVersion) {
	found := map[runtimeschema.GroupVersion]bool{}
	for _, gvk := range servedKinds {
		if gvk.GroupVersion().String() != "core.gardener.cloud/v1" {
			found[gvk.GroupVersion()] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b runtimeschema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
}()

func FuzzJSON(f *testing.F) {
	seeds(f, func(_ int, obj runtime.Object) {
		data, err := json.Marshal(obj)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			handle(t, data, false)
			handle(t, data, true)
		}
	})
}

func FuzzYAML(f *testing.F) {
	seeds(f, func(_ int, obj runtime.Object) {
		data, err := yaml.Marshal(obj)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	})
	f.Fuzz(func(t *testing.T, data []byte) { handle(t, data, len(data)%2 == 0) })
}

// FuzzProtobuf puts bytes into the envelope of a kind, so that they get as far as its decoder.
func FuzzProtobuf(f *testing.F) {
	seeds(f, func(i int, obj runtime.Object) {
		marshaler, ok := obj.(interface{ Marshal() ([]byte, error) })
		if !ok {
			f.Fatalf("%T is not served in protobuf", obj)
		}
		data, err := marshaler.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), data)
	})
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		gvk := servedKinds[int(kind)%len(servedKinds)]
		envelope := runtime.Unknown{
			TypeMeta: runtime.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}, Raw: data,
		}
		body, err := envelope.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		handle(t, append([]byte("k8s\x00"), body...), false)
	})
}

// decoder returns how a configuration is read.
func decoder[T any](kind configfile.Kind[T]) func([]byte) error {
	return func(data []byte) error {
		_, err := kind.Decode(data)
		return err
	}
}

// configurations are all configurations of processes and admission plugins.
var configurations = []struct {
	group, kind string
	decode      func([]byte) error
}{
	{"admissioncontroller.config.gardener.cloud", "AdmissionControllerConfiguration", decoder(configfile.Kind[admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration]{
		AddToScheme: admissioncontrollerconfigv1alpha1.AddToScheme, Validate: config.ValidateAdmissionController,
	})},
	{"controllermanager.config.gardener.cloud", "ControllerManagerConfiguration", decoder(configfile.Kind[controllermanagerconfigv1alpha1.ControllerManagerConfiguration]{
		AddToScheme: controllermanagerconfigv1alpha1.AddToScheme, Validate: config.ValidateControllerManager,
	})},
	{"scheduler.config.gardener.cloud", "SchedulerConfiguration", decoder(configfile.Kind[schedulerconfigv1alpha1.SchedulerConfiguration]{
		AddToScheme: schedulerconfigv1alpha1.AddToScheme, Validate: config.ValidateScheduler,
	})},
	{"gardenlet.config.gardener.cloud", "GardenletConfiguration", decoder(configfile.Kind[gardenletconfigv1alpha1.GardenletConfiguration]{
		AddToScheme: gardenletconfigv1alpha1.AddToScheme,
		Validate: func(c *gardenletconfigv1alpha1.GardenletConfiguration) field.ErrorList {
			return gardenlet.ValidateGardenletConfiguration(c, nil, false)
		},
	})},
	{"operator.config.gardener.cloud", "OperatorConfiguration", decoder(configfile.Kind[operatorconfigv1alpha1.OperatorConfiguration]{
		AddToScheme: operatorconfigv1alpha1.AddToScheme, Validate: config.ValidateOperator,
	})},
	{"nodeagent.config.gardener.cloud", "NodeAgentConfiguration", decoder(configfile.Kind[nodeagentconfigv1alpha1.NodeAgentConfiguration]{
		AddToScheme: nodeagentconfigv1alpha1.AddToScheme, Validate: config.ValidateNodeAgent,
	})},
	{"resourcemanager.config.gardener.cloud", "ResourceManagerConfiguration", decoder(configfile.Kind[resourcemanagerconfigv1alpha1.ResourceManagerConfiguration]{
		AddToScheme: resourcemanagerconfigv1alpha1.AddToScheme, Validate: config.ValidateResourceManager,
	})},
	{"shootdnsrewriting.admission.gardener.cloud", "Configuration", decoder(configfile.Kind[shootdnsrewritingv1alpha1.Configuration]{
		AddToScheme: shootdnsrewritingv1alpha1.AddToScheme, Validate: config.ValidateShootDNSRewriting,
	})},
	{"shootresourcereservation.admission.gardener.cloud", "Configuration", decoder(configfile.Kind[shootresourcereservationv1alpha1.Configuration]{
		AddToScheme: shootresourcereservationv1alpha1.AddToScheme, Validate: config.ValidateShootResourceReservation,
	})},
	{"shoottolerationrestriction.admission.gardener.cloud", "Configuration", decoder(configfile.Kind[shoottolerationrestrictionv1alpha1.Configuration]{
		AddToScheme: shoottolerationrestrictionv1alpha1.AddToScheme, Validate: config.ValidateShootTolerationRestriction,
	})},
}

func FuzzConfiguration(f *testing.F) {
	for i, c := range configurations {
		header := fmt.Sprintf("apiVersion: %s/v1alpha1\nkind: %s\n", c.group, c.kind)
		f.Add(uint8(i), []byte(header))
		for _, g := range groups {
			if g.schema != c.group+"_v1alpha1" {
				continue
			}
			// Defaults show the decoder which keys there are.
			scheme := runtime.NewScheme()
			if err := g.addToScheme(scheme); err != nil {
				f.Fatal(err)
			}
			gvk := runtimeschema.GroupVersionKind{Group: c.group, Version: "v1alpha1", Kind: c.kind}
			obj, err := scheme.New(gvk)
			if err != nil {
				f.Fatal(err)
			}
			fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, fuzzers), rand.NewSource(1), serializer.NewCodecFactory(scheme)).NilChance(.2).NumElements(1, 2)
			for range 3 {
				fill.Fill(obj)
				obj.GetObjectKind().SetGroupVersionKind(gvk)
				data, err := yaml.Marshal(obj)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(uint8(i), data)
			}
		}
	}
	f.Fuzz(func(_ *testing.T, i uint8, data []byte) {
		_ = configurations[int(i)%len(configurations)].decode(data) // an error is an answer
	})
}
