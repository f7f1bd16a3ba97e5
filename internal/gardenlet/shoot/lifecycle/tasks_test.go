package lifecycle

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

func TestTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		done       []string
		want       []string
	}{
		"none":                 {},
		"all are done":         {annotation: "deployInfrastructure,restartCoreAddons", done: []string{"deployInfrastructure", "restartCoreAddons"}},
		"one came later":       {annotation: "deployInfrastructure, restartCoreAddons", done: []string{"deployInfrastructure"}, want: []string{"restartCoreAddons"}},
		"one is for others":    {annotation: "deployInfrastructure,custom", done: []string{"deployInfrastructure", "custom"}, want: []string{"custom"}},
		"nothing between them": {annotation: ",,", done: []string{"custom"}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Annotations = map[string]string{constants.ShootTasks: tc.annotation}
			got := remainingTasks(tasksOf(shoot), tc.done)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("remainingTasks() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncryptionAtRest(t *testing.T) {
	for name, tc := range map[string]struct {
		spec   []string
		before *corev1beta1.EncryptionAtRest
		former []string
		change bool
		added  []string
	}{
		"a new cluster":     {spec: []string{"configmaps"}},
		"nothing changes":   {spec: []string{"configmaps"}, before: &corev1beta1.EncryptionAtRest{Resources: []string{"configmaps"}}},
		"more is encrypted": {spec: []string{"configmaps"}, before: &corev1beta1.EncryptionAtRest{}, change: true, added: []string{"configmaps"}},
		"less is encrypted": {before: &corev1beta1.EncryptionAtRest{Resources: []string{"configmaps"}}, former: []string{"configmaps"}, change: true},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: tc.spec}}
			shoot.Status.Credentials = &corev1beta1.ShootCredentials{EncryptionAtRest: tc.before}
			wanted, former := encryptedResources(shoot)
			if len(former) == 0 {
				former = nil
			}
			if diff := cmp.Diff([][]string{tc.spec, tc.former}, [][]string{wanted, former}); diff != "" {
				t.Errorf("encryptedResources() (-want +got):\n%s", diff)
			}
			if got := changesEncryption(shoot); got != tc.change {
				t.Errorf("changesEncryption() is %t", got)
			}
			if got := addedResources(shoot); !slices.Equal(got, tc.added) {
				t.Errorf("addedResources() are %q, want %q", got, tc.added)
			}
			recordEncryption(shoot, &world{shoot: shoot})
			want := &corev1beta1.EncryptionAtRest{Resources: tc.spec, Provider: corev1beta1.EncryptionProviderStatus{Type: "aescbc"}}
			if diff := cmp.Diff(want, shoot.Status.Credentials.EncryptionAtRest); diff != "" {
				t.Errorf("recordEncryption() (-want +got):\n%s", diff)
			}
			if changesEncryption(shoot) {
				t.Error("there is still something to do after the end of the operation")
			}
		})
	}
}

func TestIsReferenced(t *testing.T) {
	shoot := &corev1beta1.Shoot{}
	resource := corev1beta1.NamedResourceReference{Name: "x"}
	resource.ResourceRef.Kind, resource.ResourceRef.Name = "Secret", "creds"
	shoot.Spec.Resources = append(shoot.Spec.Resources, resource)
	identity := corev1beta1.NamedResourceReference{Name: "y"}
	identity.ResourceRef.Kind, identity.ResourceRef.Name = "WorkloadIdentity", "w"
	shoot.Spec.Resources = append(shoot.Spec.Resources, identity)
	if !isReferenced(shoot, "Secret", "workload-identity-ref-w") || !isReferenced(shoot, "Secret", "ref-creds") || isReferenced(shoot, "ConfigMap", "ref-creds") || isReferenced(shoot, "Secret", "ref-other") {
		t.Error("isReferenced() does not know what the Shoot refers to")
	}
}

func TestReferencesAreCopied(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1beta1.AddToScheme, securityv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
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
	w := example()
	for kind, name := range map[string]string{"Secret": "creds", "ConfigMap": "config", "WorkloadIdentity": "w"} {
		resource := corev1beta1.NamedResourceReference{Name: name}
		resource.ResourceRef.Kind, resource.ResourceRef.Name = kind, name
		w.shoot.Spec.Resources = append(w.shoot.Spec.Resources, resource)
	}
	h := &hosted{world: w, reconciler: &reconciler{live: garden, Values: Values{SeedClient: seed}}}
	if err := h.copyReferences(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.dropReferences(t.Context()); err != nil {
		t.Fatal(err)
	}
	secrets, configMap := &corev1.SecretList{}, &corev1.ConfigMap{}
	if err := errors.Join(seed.List(t.Context(), secrets), seed.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "ref-config"}, configMap)); err != nil {
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

// What a user writes beside credentials decides nothing: controllers of the seed obey labels and annotations.
func TestCredentialsAreCopiedWithoutMetadata(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1beta1.AddToScheme, securityv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	meta := metav1.ObjectMeta{
		Namespace: "garden-dev", Name: "creds",
		Labels: map[string]string{
			"security.gardener.cloud/purpose": "workload-identity-token-requestor", "resources.gardener.cloud/purpose": "token-requestor",
			"resources.gardener.cloud/class": "garden",
		},
		Annotations: map[string]string{
			"workloadidentity.security.gardener.cloud/name": "victim", "workloadidentity.security.gardener.cloud/namespace": "garden-victim",
			"serviceaccount.resources.gardener.cloud/name": "extension-victim",
		},
	}
	data := map[string][]byte{"k": []byte("v")}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Secret{ObjectMeta: meta, Data: data},
		&corev1beta1.InternalSecret{ObjectMeta: meta, Data: data},
		&securityv1alpha1.WorkloadIdentity{ObjectMeta: meta, Spec: securityv1alpha1.WorkloadIdentitySpec{TargetSystem: securityv1alpha1.TargetSystem{Type: "local"}}},
	).Build()
	ofIdentity := metav1.ObjectMeta{
		Namespace: "shoot--dev--crazy-botany", Name: "copy",
		Labels: map[string]string{
			"security.gardener.cloud/purpose": "workload-identity-token-requestor", "workloadidentity.security.gardener.cloud/provider": "local", "own": "label",
		},
		Annotations: map[string]string{
			"workloadidentity.security.gardener.cloud/name": "creds", "workloadidentity.security.gardener.cloud/namespace": "garden-dev",
			"workloadidentity.security.gardener.cloud/context-object": `{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","name":"crazy-botany","namespace":"garden-dev","uid":"1"}`,
		},
	}
	plain := metav1.ObjectMeta{Namespace: ofIdentity.Namespace, Name: ofIdentity.Name, Labels: map[string]string{"own": "label"}}
	for kind, want := range map[string]*corev1.Secret{
		"Secret":           {ObjectMeta: plain, Data: data, Type: corev1.SecretTypeOpaque},
		"InternalSecret":   {ObjectMeta: plain, Data: data, Type: corev1.SecretTypeOpaque},
		"WorkloadIdentity": {ObjectMeta: ofIdentity, Type: corev1.SecretTypeOpaque},
	} {
		t.Run(kind, func(t *testing.T) {
			r := &reconciler{live: garden}
			c, err := r.credential(t.Context(), example().shoot, corev1.ObjectReference{Kind: kind, Namespace: meta.Namespace, Name: meta.Name})
			if err != nil {
				t.Fatal(err)
			}
			if c.kind != kind {
				t.Errorf("the kind is %q, want that of the reference", c.kind)
			}
			if diff := cmp.Diff(want, c.secret(plain.Namespace, plain.Name, map[string]string{"own": "label"})); diff != "" {
				t.Errorf("Secret in the seed (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := (&reconciler{live: garden}).credential(t.Context(), example().shoot, corev1.ObjectReference{Kind: "ConfigMap"}); err == nil {
		t.Error("credentials in a ConfigMap are taken")
	}
}
