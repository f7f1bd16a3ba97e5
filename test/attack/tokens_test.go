package attack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/workloadidentity"
	"gardener.cloud/gardener/internal/tokenrequestor"
	"gardener.cloud/gardener/test/env"
)

// attackerNamespace is the namespace of the attacker's shoot in the seed.
const attackerNamespace = "shoot--attacker--evil"

// orders are what a member of a project writes beside own credentials to get a token of another project's WorkloadIdentity, and one of an
// extension in the garden. The shoot is the context of the first.
func orders(shoot string) (labels, annotations map[string]string) {
	labels = map[string]string{
		"security.gardener.cloud/purpose": "workload-identity-token-requestor", "workloadidentity.security.gardener.cloud/provider": "local",
		"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "garden",
	}
	annotations = map[string]string{
		"workloadidentity.security.gardener.cloud/namespace": "garden-victim", "workloadidentity.security.gardener.cloud/name": "victim",
		"workloadidentity.security.gardener.cloud/context-object": shoot,
		"serviceaccount.resources.gardener.cloud/name":            "extension-victim", "serviceaccount.resources.gardener.cloud/namespace": "kube-system",
		"serviceaccount.resources.gardener.cloud/labels": `{"controllerregistration.core.gardener.cloud/name":"victim"}`,
	}
	return labels, annotations
}

// The seed acts on labels and annotations of Secrets. A member of a project writes them on own Secrets, which are copied there.
func TestTokensOfOthersByMetadataOfCredentials(t *testing.T) {
	g := start(t)
	labels, annotations := orders(`{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","namespace":"garden-victim","name":"victim","uid":"1"}`)
	meta := metav1.ObjectMeta{Namespace: attackers, Name: "evil", Labels: labels, Annotations: annotations}
	data := map[string][]byte{"token": []byte("own")}
	shoot := newShoot("evil")
	shoot.Spec.DNS = &corev1beta1.DNS{Domain: new("evil.example.com"), Providers: []corev1beta1.DNSProvider{{
		Type: new("local"), Primary: new(true), CredentialsRef: &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "evil"},
	}}}
	for _, kind := range []string{"Secret", "ConfigMap", "WorkloadIdentity"} {
		reference := corev1beta1.NamedResourceReference{Name: strings.ToLower(kind)}
		reference.ResourceRef.APIVersion, reference.ResourceRef.Kind, reference.ResourceRef.Name = "v1", kind, "evil"
		if kind == "WorkloadIdentity" {
			reference.ResourceRef.APIVersion = securityv1alpha1.SchemeGroupVersion.String()
		}
		shoot.Spec.Resources = append(shoot.Spec.Resources, reference)
	}
	g.create(t,
		&corev1.Secret{ObjectMeta: meta, Data: data},
		&corev1.ConfigMap{ObjectMeta: meta},
		&securityv1alpha1.WorkloadIdentity{ObjectMeta: meta, Spec: securityv1alpha1.WorkloadIdentitySpec{
			Audiences: []string{"cloud"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "local"},
		}},
		shoot,
	)
	g.reconcileShoots(t)

	const role = "gardener.cloud/role"
	own := fmt.Sprintf(`{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","name":"evil","namespace":%q,"uid":%q}`, attackers, shoot.UID)
	want := map[string]metav1.ObjectMeta{
		"cloudprovider": {Labels: map[string]string{"gardener.cloud/purpose": "cloudprovider"}},
		"ref-evil":      {Labels: map[string]string{role: "resource-reference"}},
		"workload-identity-ref-evil": {
			Labels: map[string]string{
				role: "resource-reference", "security.gardener.cloud/purpose": "workload-identity-token-requestor",
				"workloadidentity.security.gardener.cloud/provider": "local",
			},
			Annotations: map[string]string{
				"workloadidentity.security.gardener.cloud/namespace": attackers, "workloadidentity.security.gardener.cloud/name": "evil",
				"workloadidentity.security.gardener.cloud/context-object": own,
			},
		},
	}
	got := map[string]metav1.ObjectMeta{}
	env.AwaitList(t, g.c, func(secrets []*corev1.Secret) error {
		clear(got)
		for _, secret := range secrets {
			if _, ok := want[secret.Name]; ok {
				got[secret.Name] = metav1.ObjectMeta{Labels: secret.Labels, Annotations: secret.Annotations}
			}
		}
		if len(got) < len(want) {
			return fmt.Errorf("of the copies, there are only %q", slices.Sorted(maps.Keys(got)))
		}
		return nil
	}, client.InNamespace(attackerNamespace))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels and annotations of copies in the seed (-want +got):\n%s", diff)
	}
	configMap := &corev1.ConfigMap{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Namespace: attackerNamespace, Name: "ref-evil"}, configMap); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(metav1.ObjectMeta{Labels: map[string]string{role: "resource-reference"}},
		metav1.ObjectMeta{Labels: configMap.Labels, Annotations: configMap.Annotations}); diff != "" {
		t.Errorf("labels and annotations of the ConfigMap in the seed (-want +got):\n%s", diff)
	}
}

// Should orders for tokens of others get into the seed all the same, they are not carried out.
func TestTokensOfOthersByOrdersInTheSeed(t *testing.T) {
	g := start(t)
	shoot := newShoot("evil")
	reference := corev1beta1.NamedResourceReference{Name: "own"}
	reference.ResourceRef.APIVersion, reference.ResourceRef.Kind = securityv1alpha1.SchemeGroupVersion.String(), "WorkloadIdentity"
	reference.ResourceRef.Name = "own"
	shoot.Spec.Resources = []corev1beta1.NamedResourceReference{reference}
	identity := securityv1alpha1.WorkloadIdentitySpec{Audiences: []string{"cloud"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "local"}}
	g.create(t, namespace("garden-victim"), shoot,
		&securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-victim", Name: "victim"}, Spec: identity},
		&securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "own"}, Spec: identity},
	)
	here := namespace(attackerNamespace)
	here.Annotations = map[string]string{"shoot.gardener.cloud/uid": string(shoot.UID)}
	g.create(t, here)
	own := fmt.Sprintf(`{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","name":"evil","namespace":%q,"uid":%q}`, attackers, shoot.UID)

	identities := workloadidentity.New(workloadidentity.Values{
		SeedName: seedName, GardenClient: g.c, SeedClient: g.c, TokenExpiration: 6 * time.Hour, Clock: clock.RealClock{},
	})
	accounts := tokenrequestor.New(g.c, g.c, nil, tokenrequestor.Values{Class: "garden", TargetNamespace: "seed-" + seedName})
	for name, tc := range map[string]struct {
		requestor   reconcile.Reconciler
		name        string
		annotations map[string]string
		served      bool
	}{
		"a WorkloadIdentity of another project": {requestor: identities, name: "a"},
		"its own WorkloadIdentity": {requestor: identities, name: "b", served: true, annotations: map[string]string{
			"workloadidentity.security.gardener.cloud/namespace": attackers, "workloadidentity.security.gardener.cloud/name": "own",
		}},
		"its own WorkloadIdentity for another shoot": {requestor: identities, name: "c", annotations: map[string]string{
			"workloadidentity.security.gardener.cloud/namespace": attackers, "workloadidentity.security.gardener.cloud/name": "own",
			"workloadidentity.security.gardener.cloud/context-object": strings.ReplaceAll(own, string(shoot.UID), "1"),
		}},
		"an extension, from a copy of credentials":        {requestor: accounts, name: "cloudprovider"},
		"an extension, from a copy of credentials of DNS": {requestor: accounts, name: "dnsrecord-evil-external"},
		"an extension, from a copy of a reference":        {requestor: accounts, name: "ref-evil"},
		"an account that is no extension": {requestor: accounts, name: "d", annotations: map[string]string{
			"serviceaccount.resources.gardener.cloud/name": "default",
		}},
		"a Secret in another namespace of the garden": {requestor: accounts, name: "e", annotations: map[string]string{
			"token-requestor.resources.gardener.cloud/target-secret-namespace": "garden", "token-requestor.resources.gardener.cloud/target-secret-name": "x",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			labels, annotations := orders(own)
			maps.Copy(annotations, tc.annotations)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: attackerNamespace, Name: tc.name, Labels: labels, Annotations: annotations}}
			g.create(t, secret)
			_, err := tc.requestor.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(secret)})
			if (err == nil) != tc.served {
				t.Errorf("the requestor returns %v", err)
			}
			if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
				t.Fatal(err)
			}
			if served := len(secret.Data["token"]) > 0; served != tc.served {
				t.Errorf("the Secret has a token: %t, want %t", served, tc.served)
			}
		})
	}
	found := &corev1.ServiceAccountList{}
	if err := g.c.List(t.Context(), found, client.InNamespace("seed-"+seedName)); err != nil {
		t.Fatal(err)
	}
	for _, account := range found.Items {
		if account.Name != "default" {
			t.Errorf("ServiceAccount %q was created in the garden", account.Name)
		}
	}
}
