package foundation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/errorcode"
)

func TestReferencesNames(t *testing.T) {
	r := References{}
	for kind, name := range map[string]string{"Secret": "creds", "WorkloadIdentity": "w"} {
		resource := corev1beta1.NamedResourceReference{Name: kind}
		resource.ResourceRef.Kind, resource.ResourceRef.Name = kind, name
		r.Resources = append(r.Resources, resource)
	}
	if !r.names("Secret", "workload-identity-ref-w") || !r.names("Secret", "ref-creds") || r.names("ConfigMap", "ref-creds") || r.names("Secret", "ref-other") {
		t.Error("names() does not match spec.resources")
	}
}

func TestReferencesAreCopied(t *testing.T) {
	scheme := stagetest.Scheme(t)
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "creds"}, Data: map[string][]byte{"k": []byte("v")}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "config"}, Data: map[string]string{"k": "v"}},
		&securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "w"}, Spec: securityv1alpha1.WorkloadIdentitySpec{
			TargetSystem: securityv1alpha1.TargetSystem{Type: "local", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}},
		}},
	).Build()
	seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--crazy-botany", Name: "ref-old", Labels: map[string]string{"gardener.cloud/role": "resource-reference"}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--crazy-botany", Name: "ref-of-others"}},
	).Build()
	shoot := &corev1beta1.Shoot{}
	shoot.Namespace = "garden-dev"
	for kind, name := range map[string]string{"Secret": "creds", "ConfigMap": "config", "WorkloadIdentity": "w"} {
		resource := corev1beta1.NamedResourceReference{Name: name}
		resource.ResourceRef.Kind, resource.ResourceRef.Name = kind, name
		shoot.Spec.Resources = append(shoot.Spec.Resources, resource)
	}
	in := Inputs{Run: &stage.Run{SeedAPI: seed, GardenAPI: garden, Namespace: stagetest.Namespace, FieldManager: "gardenlet"}, Shoot: shoot}
	if err := in.references().Copy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := in.references().DeleteStale(t.Context()); err != nil {
		t.Fatal(err)
	}
	secrets, configMap := &corev1.SecretList{}, &corev1.ConfigMap{}
	if err := errors.Join(seed.List(t.Context(), secrets), seed.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "ref-config"}, configMap)); err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string][]byte{}
	for i := range secrets.Items {
		got[secrets.Items[i].Name] = secrets.Items[i].Data
		if name := secrets.Items[i].Name; (secrets.Items[i].Labels["security.gardener.cloud/purpose"] == "workload-identity-token-requestor") != (name == "workload-identity-ref-w") {
			t.Errorf("Secret %q has labels %v", name, secrets.Items[i].Labels)
		}
	}
	if diff := cmp.Diff(map[string]map[string][]byte{
		"ref-creds": {"k": []byte("v")}, "workload-identity-ref-w": {"config": []byte(`{"a":1}`)}, "ref-of-others": nil,
	}, got); diff != "" {
		t.Errorf("Secrets in the seed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"k": "v"}, configMap.Data); diff != "" {
		t.Errorf("ConfigMap in the seed (-want +got):\n%s", diff)
	}
}

// A Shoot can be deleted although an object is missing that it refers to. Otherwise, that is an error, as extensions need it.
func TestMissingReferencesOfDeletedShoot(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).Build()
	shoot := &corev1beta1.Shoot{}
	for _, kind := range []string{"Secret", "ConfigMap", "WorkloadIdentity"} {
		resource := corev1beta1.NamedResourceReference{Name: kind}
		resource.ResourceRef.Kind, resource.ResourceRef.Name = kind, "missing"
		shoot.Spec.Resources = append(shoot.Spec.Resources, resource)
	}
	in := Inputs{Run: &stage.Run{SeedAPI: c, GardenAPI: c, Namespace: stagetest.Namespace, FieldManager: "gardenlet"}, Shoot: shoot}
	if err := in.references().Copy(t.Context()); err == nil {
		t.Error("no error says that objects are missing")
	}
	shoot.DeletionTimestamp = new(metav1.Now())
	if err := in.references().Copy(t.Context()); err != nil {
		t.Errorf("the shoot cannot be deleted: %v", err)
	}
}

// Users decide how many objects are copied into the etcd of the seed, and how large they are. Beyond a limit, nothing is copied, nor even read in the
// garden.
func TestReferencesAreLimited(t *testing.T) {
	for _, kind := range []string{"Secret", "ConfigMap"} {
		t.Run(kind, func(t *testing.T) {
			garden, shoot := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)), &corev1beta1.Shoot{}
			for i := range 20 {
				meta := metav1.ObjectMeta{Namespace: "garden-dev", Name: fmt.Sprintf("large-%d", i)}
				var object client.Object = &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"k": make([]byte, corev1.MaxSecretSize-1)}}
				if kind == "ConfigMap" {
					object = &corev1.ConfigMap{ObjectMeta: meta, BinaryData: map[string][]byte{"k": make([]byte, corev1.MaxSecretSize-1)}}
				}
				garden.WithObjects(object)
				resource := corev1beta1.NamedResourceReference{Name: meta.Name}
				resource.ResourceRef.Kind, resource.ResourceRef.Name = kind, meta.Name
				shoot.Spec.Resources = append(shoot.Spec.Resources, resource)
			}
			shoot.Namespace = "garden-dev"
			reads := 0
			gardenAPI := interceptor.NewClient(garden.Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, object, options...)
				},
			})
			seed := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).Build()
			in := Inputs{Run: &stage.Run{SeedAPI: seed, GardenAPI: gardenAPI, Namespace: stagetest.Namespace, FieldManager: "gardenlet"}, Shoot: shoot}
			err := in.references().Copy(t.Context())
			if err == nil || !strings.Contains(err.Error(), `spec.resources: "large-16"`) || !slices.Contains(errorcode.Of(err), corev1beta1.ErrorConfigurationProblem) {
				t.Errorf("the error is %v", err)
			}
			if reads > 17 {
				t.Errorf("%d objects were read", reads)
			}
			copies := &metav1.PartialObjectMetadataList{}
			copies.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
			if err := seed.List(t.Context(), copies); err != nil || len(copies.Items) > 0 {
				t.Errorf("%d objects are in the seed: %v", len(copies.Items), err)
			}
		})
	}
}

// Small objects are limited by their number: each costs requests and metadata.
func TestNumberOfReferencesIsLimited(t *testing.T) {
	const most = 1040
	shoot := &corev1beta1.Shoot{}
	for i := range most + 1 {
		resource := corev1beta1.NamedResourceReference{Name: fmt.Sprintf("small-%d", i)}
		resource.ResourceRef.Kind, resource.ResourceRef.Name = configMap, resource.Name
		shoot.Spec.Resources = append(shoot.Spec.Resources, resource)
	}
	none := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).Build()
	empty := interceptor.NewClient(none, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return nil
		},
	})
	in := Inputs{Run: &stage.Run{SeedAPI: none, GardenAPI: empty, Namespace: stagetest.Namespace, FieldManager: "gardenlet"}, Shoot: shoot}
	err := in.references().Copy(t.Context())
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf(`spec.resources: "small-%d"`, most)) || !slices.Contains(errorcode.Of(err), corev1beta1.ErrorConfigurationProblem) {
		t.Errorf("the error is %v", err)
	}
}

// The user has to create a missing object. A garden that does not answer is a temporary error.
func TestMissingReferences(t *testing.T) {
	shoot := &corev1beta1.Shoot{}
	resource := corev1beta1.NamedResourceReference{Name: "x"}
	resource.ResourceRef.Kind, resource.ResourceRef.Name = "Secret", "creds"
	shoot.Spec.Resources = append(shoot.Spec.Resources, resource)
	for name, tc := range map[string]struct {
		answer error
		want   []corev1beta1.ErrorCode
	}{
		"missing":   {want: []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}},
		"no answer": {answer: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			garden := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if tc.answer != nil {
						return tc.answer
					}
					return c.Get(ctx, key, obj, opts...)
				},
			}).Build()
			err := Inputs{Run: &stage.Run{GardenAPI: garden, Namespace: stagetest.Namespace}, Shoot: shoot}.references().Copy(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, errorcode.Of(err)); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
		})
	}
}
