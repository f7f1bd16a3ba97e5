package controllermanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

func testAdoption(t *testing.T, g *garden) {
	inNamespace := func(name string) func(*corev1beta1.Project) {
		return func(p *corev1beta1.Project) { p.Spec.Namespace = &name }
	}
	labelsFor := func(project string) map[string]string {
		return map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": project}
	}

	t.Run("one without labels is not changed until it gets them", func(t *testing.T) {
		ns := namespace("garden-foreign", nil)
		g.create(t, ns, project("adopter", inNamespace(ns.Name)))
		awaitPhase(t, g, "adopter", corev1beta1.ProjectFailed)
		awaitEvent(t, g, "adopter", "NamespaceReconcileFailed")
		edit(t, g, ns, func(n *corev1.Namespace) {
			if n.Annotations["namespace.gardener.cloud/project"] != "" || len(n.OwnerReferences) > 0 {
				t.Error("the namespace was changed")
			}
			maps.Copy(n.Labels, labelsFor("adopter"))
		})
		awaitPhase(t, g, "adopter", corev1beta1.ProjectReady)
	})

	t.Run("one of another project is not adopted", func(t *testing.T) {
		ns := namespace("garden-taken", labelsFor("second"))
		ns.Annotations = map[string]string{"namespace.gardener.cloud/project": "another"}
		g.create(t, ns, project("second", inNamespace(ns.Name)))
		awaitPhase(t, g, "second", corev1beta1.ProjectFailed)
	})

	t.Run("one that is older than the project stays when the project is deleted", func(t *testing.T) {
		ns := namespace("garden-kept", labelsFor("kept"))
		p := project("kept", inNamespace(ns.Name))
		g.create(t, ns, p)
		awaitPhase(t, g, "kept", corev1beta1.ProjectReady)
		if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
			t.Fatal(err)
		}
		if ns.Annotations["namespace.gardener.cloud/keep-after-project-deletion"] != "true" {
			t.Errorf("annotations are %v, want one that keeps the namespace", ns.Annotations)
		}
		g.delete(t, p)
		env.AwaitGone(t, g.client, p)
		if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
			t.Fatal(err)
		}
		if ns.DeletionTimestamp != nil || len(ns.Labels) != 1 || len(ns.Annotations) > 0 || len(ns.OwnerReferences) > 0 {
			t.Errorf("the namespace still belongs to a project: %v", ns.ObjectMeta)
		}
	})

	t.Run("one whose labels name another project is not deleted", func(t *testing.T) {
		p := project("mine", inNamespace("garden-mine"))
		g.create(t, p)
		awaitPhase(t, g, "mine", corev1beta1.ProjectReady)
		// While the controllers do not run, the namespace becomes that of another project.
		g.stop(t)
		ns := namespace("garden-mine", nil)
		edit(t, g, ns, func(n *corev1.Namespace) { n.Labels["project.gardener.cloud/name"] = "other" })
		g.delete(t, p)
		g.start(t)
		env.AwaitGone(t, g.client, p)
		if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil || ns.DeletionTimestamp != nil {
			t.Errorf("the namespace: %v, deleted at %v", err, ns.DeletionTimestamp)
		}
	})
}

func hasFinalizer[T client.Object](finalizer string, want bool) func(T) error {
	return func(obj T) error {
		if slices.Contains(obj.GetFinalizers(), finalizer) != want {
			return fmt.Errorf("finalizers are %v, want %s: %t", obj.GetFinalizers(), finalizer, want)
		}
		return nil
	}
}

func namespacedProfile(namespace, name, parent string, change ...func(*corev1beta1.NamespacedCloudProfile)) *corev1beta1.NamespacedCloudProfile {
	p := &corev1beta1.NamespacedCloudProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1beta1.NamespacedCloudProfileSpec{Parent: corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: parent}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func testCloudProfile(t *testing.T, g *garden) {
	g.create(t, namespace("garden-profile", nil))
	profile, child := builder.CloudProfile("used", builder.Versions("1.36.1")), namespacedProfile("garden-profile", "child", "used")
	user := shoot("garden-profile", "user", func(s *corev1beta1.Shoot) { s.Spec.CloudProfile.Name = "used" })
	g.create(t, profile)
	env.Await(t, g.client, profile, hasFinalizer[*corev1beta1.CloudProfile]("gardener", true))
	g.create(t, child, user)
	g.awaitCached(t, child, user)
	g.delete(t, profile)
	awaitEvent(t, g, "used", "ResourceReferenced")
	g.delete(t, user)
	g.settle(t)
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
		t.Fatal("the profile was deleted, although another one extends it:", err)
	}
	g.delete(t, child)
	env.AwaitGone(t, g.client, profile)
}

func testNamespacedCloudProfile(t *testing.T, g *garden) {
	later := metav1.NewTime(time.Now().Add(1000 * time.Hour).Truncate(time.Second))
	parent := builder.CloudProfile("parent", builder.Versions("1.36.1", "1.35.4"))
	child := namespacedProfile("garden-profile", "longer", "parent", func(p *corev1beta1.NamespacedCloudProfile) {
		p.Spec.Kubernetes = &corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{{Version: "1.35.4", ExpirationDate: &later}}}
		p.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "large"}}
	})
	// The profile is created before its parent.
	g.create(t, child, parent)
	merged := func(want string) {
		t.Helper()
		env.Await(t, g.client, child, func(p *corev1beta1.NamespacedCloudProfile) error {
			if p.Status.CloudProfileSpec == nil {
				return errors.New("status.cloudProfileSpec is not set yet")
			}
			var got []string
			for _, version := range p.Status.CloudProfileSpec.Kubernetes.Versions {
				got = append(got, fmt.Sprintf("%s:%t", version.Version, version.ExpirationDate != nil))
			}
			for _, machineType := range p.Status.CloudProfileSpec.MachineTypes {
				got = append(got, machineType.Name)
			}
			if got := strings.Join(got, " "); got != want || p.Status.ObservedGeneration != p.Generation {
				return fmt.Errorf("merged are %s of generation %d, want %s of %d", got, p.Status.ObservedGeneration, want, p.Generation)
			}
			return nil
		})
	}
	merged("1.36.1:false 1.35.4:true local large")
	edit(t, g, parent, func(p *corev1beta1.CloudProfile) {
		p.Spec.Kubernetes.Versions = append(p.Spec.Kubernetes.Versions, corev1beta1.ExpirableVersion{Version: "1.34.9"})
	})
	merged("1.36.1:false 1.35.4:true 1.34.9:false local large")
	edit(t, g, child, func(p *corev1beta1.NamespacedCloudProfile) { p.Spec.Kubernetes = nil })
	merged("1.36.1:false 1.35.4:false 1.34.9:false local large")

	user := shoot("garden-profile", "custom", func(s *corev1beta1.Shoot) {
		s.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "longer"}
	})
	g.create(t, user)
	g.awaitCached(t, user)
	g.delete(t, child)
	awaitEvent(t, g, "longer", "ResourceReferenced")
	g.delete(t, user)
	env.AwaitGone(t, g.client, child)
}

// marks returns the labels and finalizers of an object.
func marks(obj client.Object) string {
	var all []string
	for label := range obj.GetLabels() {
		all = append(all, label)
	}
	all = append(all, obj.GetFinalizers()...)
	slices.Sort(all)
	return strings.Join(all, " ")
}

func marked[T client.Object](want string) func(T) error {
	return func(obj T) error {
		if got := marks(obj); got != want {
			return fmt.Errorf("marks are %q, want %q", got, want)
		}
		return nil
	}
}

func testBindings(t *testing.T, g *garden) {
	const (
		byCredentials = "gardener.cloud/credentialsbinding provider.shoot.gardener.cloud/local reference.gardener.cloud/credentialsbinding"
		byBoth        = "gardener.cloud/credentialsbinding gardener.cloud/secretbinding provider.shoot.gardener.cloud/local " +
			"provider.shoot.gardener.cloud/other reference.gardener.cloud/credentialsbinding reference.gardener.cloud/secretbinding"
	)
	g.create(t, namespace("garden-bind", nil), namespace("garden-share", nil))
	shared := secret("garden-share", "cloud")
	ref := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden-share", Name: "cloud"}
	quota := &corev1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-share", Name: "trial"},
		Spec: corev1beta1.QuotaSpec{
			Scope:   corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Project"},
			Metrics: corev1.ResourceList{"cpu": {}},
		},
	}
	binding := credentialsBinding("garden-bind", "creds", ref, corev1.ObjectReference{Namespace: "garden-share", Name: "trial"})
	old := &corev1beta1.SecretBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-bind", Name: "creds"}, SecretRef: corev1.SecretReference{Namespace: "garden-share", Name: "cloud"},
		Provider: &corev1beta1.SecretBindingProvider{Type: "local,other"},
	}
	// The binding is created first.
	g.create(t, binding)
	env.Await(t, g.client, binding, hasFinalizer[*securityv1alpha1.CredentialsBinding]("gardener", true))
	g.create(t, shared, quota)
	env.Await(t, g.client, shared, marked[*corev1.Secret](byCredentials))
	env.Await(t, g.client, quota, marked[*corev1beta1.Quota]("gardener reference.gardener.cloud/credentialsbinding"))
	g.create(t, old)
	env.Await(t, g.client, shared, marked[*corev1.Secret](byBoth))

	edit(t, g, shared, func(s *corev1.Secret) { s.Labels, s.Finalizers = nil, nil })
	env.Await(t, g.client, shared, marked[*corev1.Secret](byBoth))

	user := shoot("garden-bind", "user", withWorkers("creds"))
	g.create(t, user)
	g.awaitCached(t, user)
	g.delete(t, binding, old)
	env.AwaitGone(t, g.client, old)
	env.Await(t, g.client, shared, marked[*corev1.Secret](byCredentials))
	awaitEvent(t, g, "creds", "ResourceReferenced")
	g.delete(t, shared)
	g.settle(t)
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(shared), shared); err != nil {
		t.Fatal("the credentials of a Shoot were deleted:", err)
	}
	g.delete(t, user)
	env.AwaitGone(t, g.client, binding)
	env.AwaitGone(t, g.client, shared)
	env.Await(t, g.client, quota, marked[*corev1beta1.Quota]("gardener"))

	t.Run("workload identities and internal secrets too, but no other objects", func(t *testing.T) {
		identity := &securityv1alpha1.WorkloadIdentity{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-share", Name: "identity"},
			Spec:       securityv1alpha1.WorkloadIdentitySpec{Audiences: []string{"a"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "local"}},
		}
		internal := &corev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-share", Name: "internal"}}
		other := secret("garden-share", "other")
		other.Labels = map[string]string{"provider.shoot.gardener.cloud/local": "true"}
		one := credentialsBinding("garden-bind", "one", corev1.ObjectReference{
			APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity", Namespace: "garden-share", Name: "identity",
		})
		two := credentialsBinding("garden-bind", "two", corev1.ObjectReference{
			APIVersion: "core.gardener.cloud/v1beta1", Kind: "InternalSecret", Namespace: "garden-share", Name: "internal",
		})
		g.create(t, identity, internal, other, one, two)
		env.Await(t, g.client, identity, marked[*securityv1alpha1.WorkloadIdentity](byCredentials))
		env.Await(t, g.client, internal, marked[*corev1beta1.InternalSecret](byCredentials))
		g.delete(t, one, two)
		env.Await(t, g.client, identity, marked[*securityv1alpha1.WorkloadIdentity](""))
		env.Await(t, g.client, internal, marked[*corev1beta1.InternalSecret](""))
		env.Await(t, g.client, other, marked[*corev1.Secret]("provider.shoot.gardener.cloud/local"))
	})
}

const referenceProtection = "gardener.cloud/reference-protection"

func testReferences(t *testing.T, g *garden) {
	g.create(t, namespace("garden-ref", nil))
	config := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-ref", Name: name}}
	}
	secrets, configs := []*corev1.Secret{}, []*corev1.ConfigMap{}
	for _, name := range []string{"plugin", "dns", "authz", "resource"} {
		secrets = append(secrets, secret("garden-ref", name))
		g.create(t, secrets[len(secrets)-1])
	}
	for _, name := range []string{"audit", "authn", "authz", "resource"} {
		configs = append(configs, config(name))
		g.create(t, configs[len(configs)-1])
	}
	free := secret("garden-ref", "free")
	users := []*corev1beta1.Shoot{}
	for _, name := range []string{"one", "two"} {
		users = append(users, shoot("garden-ref", name, func(s *corev1beta1.Shoot) {
			s.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
				AdmissionPlugins:         []corev1beta1.AdmissionPlugin{{Name: "ValidatingAdmissionWebhook", KubeconfigSecretName: new("plugin")}},
				AuditConfig:              &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}}},
				StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: "authn"},
				StructuredAuthorization: &corev1beta1.StructuredAuthorization{
					ConfigMapName: "authz", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "webhook", SecretName: "authz"}},
				},
			}
			s.Spec.DNS = &corev1beta1.DNS{
				Domain: new(name + ".example.com"),
				Providers: []corev1beta1.DNSProvider{{Type: new("local"), Primary: new(true), CredentialsRef: &autoscalingv1.CrossVersionObjectReference{
					APIVersion: "v1", Kind: "Secret", Name: "dns",
				}}},
			}
			for _, kind := range []string{"Secret", "ConfigMap"} {
				s.Spec.Resources = append(s.Spec.Resources, corev1beta1.NamedResourceReference{
					Name: strings.ToLower(kind), ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: "resource"},
				})
			}
		}))
		g.create(t, users[len(users)-1])
		edit(t, g, users[len(users)-1], func(s *corev1beta1.Shoot) { s.Finalizers = append(s.Finalizers, "gardener") }) // as the gardenlet does
	}
	g.create(t, free)
	for _, s := range secrets {
		env.Await(t, g.client, s, hasFinalizer[*corev1.Secret](referenceProtection, true))
	}
	for _, c := range configs {
		env.Await(t, g.client, c, hasFinalizer[*corev1.ConfigMap](referenceProtection, true))
	}
	for _, s := range users {
		env.Await(t, g.client, s, hasFinalizer[*corev1beta1.Shoot](referenceProtection, true))
	}

	t.Run("until the last Shoot does not refer to them any more", func(t *testing.T) {
		resource := secrets[3]
		withoutResources := func(s *corev1beta1.Shoot) { s.Spec.Resources = nil }
		edit(t, g, users[0], withoutResources)
		g.settle(t)
		env.Await(t, g.client, resource, hasFinalizer[*corev1.Secret](referenceProtection, true))
		edit(t, g, users[1], withoutResources)
		env.Await(t, g.client, resource, hasFinalizer[*corev1.Secret](referenceProtection, false))
		env.Await(t, g.client, configs[3], hasFinalizer[*corev1.ConfigMap](referenceProtection, false))
	})
	t.Run("and while the gardenlet deletes the Shoot", func(t *testing.T) {
		g.delete(t, users[0], users[1])
		g.settle(t)
		env.Await(t, g.client, secrets[1], hasFinalizer[*corev1.Secret](referenceProtection, true))
		for _, s := range users {
			edit(t, g, s, func(s *corev1beta1.Shoot) {
				s.Finalizers = slices.DeleteFunc(s.Finalizers, func(f string) bool { return f == "gardener" })
			})
			env.AwaitGone(t, g.client, s)
		}
		for _, s := range secrets {
			env.Await(t, g.client, s, hasFinalizer[*corev1.Secret](referenceProtection, false))
		}
	})
	env.Await(t, g.client, free, hasFinalizer[*corev1.Secret](referenceProtection, false))
}

func testStatusLabel(t *testing.T, g *garden) {
	g.create(t, namespace("garden-label", nil))
	s := shoot("garden-label", "labelled")
	g.create(t, s)
	labelled := func(want string) func(*corev1beta1.Shoot) error {
		return func(s *corev1beta1.Shoot) error {
			if got := s.Labels["shoot.gardener.cloud/status"]; got != want {
				return fmt.Errorf("label is %q, want %q", got, want)
			}
			return nil
		}
	}
	env.Await(t, g.client, s, labelled("healthy"))
	for _, status := range []corev1beta1.ConditionStatus{"False", "Progressing", "True"} {
		editStatus(t, g, s, func(s *corev1beta1.Shoot) {
			s.Status.LastOperation = &corev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", LastUpdateTime: metav1.Now()}
			s.Status.Conditions = []corev1beta1.Condition{{Type: "EveryNodeReady", Status: status, LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now()}}
		})
		want := map[corev1beta1.ConditionStatus]string{"False": "unhealthy", "Progressing": "progressing", "True": "healthy"}[status]
		env.Await(t, g.client, s, labelled(want))
	}
	edit(t, g, s, func(s *corev1beta1.Shoot) { delete(s.Labels, "shoot.gardener.cloud/status") })
	env.Await(t, g.client, s, labelled("healthy"))
}

func condition(typ corev1beta1.ConditionType, message string) corev1beta1.Condition {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	return corev1beta1.Condition{Type: typ, Status: "True", Message: message, Reason: "R", LastTransitionTime: now, LastUpdateTime: now}
}

func testConditions(t *testing.T, g *garden) {
	s := shoot("garden", "soil")
	g.create(t, s)
	editStatus(t, g, s, func(s *corev1beta1.Shoot) {
		s.Status.Conditions = []corev1beta1.Condition{condition("EveryNodeReady", "own")}
	})
	seed := builder.Seed("soil")
	g.create(t, seed)
	editStatus(t, g, seed, func(s *corev1beta1.Seed) {
		s.Status.Conditions = []corev1beta1.Condition{condition(corev1beta1.SeedGardenletReady, "first")}
	})
	template, err := json.Marshal(map[string]any{"spec": seed.Spec})
	if err != nil {
		t.Fatal(err)
	}
	gardenlet := `{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration","seedConfig":` + string(template) + `}`
	managed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "soil"},
		Spec: seedmanagementv1alpha1.ManagedSeedSpec{
			Shoot: &seedmanagementv1alpha1.Shoot{Name: "soil"}, Gardenlet: seedmanagementv1alpha1.GardenletConfig{Config: &runtime.RawExtension{Raw: []byte(gardenlet)}},
		},
	}
	expect := func(want ...string) {
		t.Helper()
		env.Await(t, g.client, s, func(s *corev1beta1.Shoot) error {
			var got []string
			for _, c := range s.Status.Conditions {
				// The controllers that check seeds may have written these.
				if c.Type != corev1beta1.SeedExtensionsReady && c.Type != corev1beta1.SeedBackupBucketsReady {
					got = append(got, string(c.Type)+":"+c.Message)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("conditions (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	expect("EveryNodeReady:own")
	g.create(t, managed)
	expect("EveryNodeReady:own", "GardenletReady:first")
	editStatus(t, g, seed, func(s *corev1beta1.Seed) {
		s.Status.Conditions = []corev1beta1.Condition{condition(corev1beta1.SeedGardenletReady, "second"), condition(corev1beta1.SeedSystemComponentsHealthy, "new")}
	})
	expect("EveryNodeReady:own", "GardenletReady:second", "SeedSystemComponentsHealthy:new")
	// The gardenlet overwrites the conditions; those of the seed are copied again.
	editStatus(t, g, s, func(s *corev1beta1.Shoot) {
		s.Status.Conditions = []corev1beta1.Condition{condition("EveryNodeReady", "newer")}
	})
	expect("EveryNodeReady:newer", "GardenletReady:second", "SeedSystemComponentsHealthy:new")
	g.delete(t, managed)
	expect("EveryNodeReady:newer")
	// No gardenlet renews its Lease: after 40 seconds its conditions would change during another test.
	g.delete(t, seed)
	env.AwaitGone(t, g.client, seed)
}

func testShootState(t *testing.T, g *garden) {
	const finalizer = "core.gardener.cloud/shootstate"
	g.create(t, namespace("garden-migrate", nil))
	s := shoot("garden-migrate", "migrated")
	state := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden-migrate", Name: "migrated", Annotations: map[string]string{"confirmation.gardener.cloud/deletion": "true"},
	}}
	g.create(t, s, state)
	operation := func(typ corev1beta1.LastOperationType, state corev1beta1.LastOperationState) {
		editStatus(t, g, s, func(s *corev1beta1.Shoot) {
			s.Status.LastOperation = &corev1beta1.LastOperation{Type: typ, State: state, LastUpdateTime: metav1.Now()}
		})
	}
	guarded := func(want bool) {
		t.Helper()
		env.Await(t, g.client, state, hasFinalizer[*corev1beta1.ShootState](finalizer, want))
	}
	guarded(false)
	operation("Migrate", "Processing")
	guarded(true)
	operation("Restore", "Processing")
	g.settle(t)
	guarded(true)
	operation("Restore", "Succeeded")
	guarded(false)
	operation("Migrate", "Succeeded")
	guarded(true)
	g.delete(t, state)
	g.settle(t)
	guarded(true)
	g.delete(t, s)
	env.AwaitGone(t, g.client, state)
}

func testMaintenance(t *testing.T, g *garden) {
	g.create(t, namespace("garden-maintained", nil))
	profile := builder.CloudProfile("maintained", builder.Versions("1.35.4", "1.35.5"))
	newer := profile.Spec.MachineImages[0].Versions[0]
	newer.Version = "2.0.0"
	profile.Spec.MachineImages[0].Versions = append(profile.Spec.MachineImages[0].Versions, newer)
	s := shoot("garden-maintained", "maintained", withWorkers("any"), func(s *corev1beta1.Shoot) {
		s.Spec.CloudProfile.Name = "maintained"
		s.Spec.Kubernetes.Version = "1.35.4"
	})
	g.create(t, profile, s)
	editStatus(t, g, s, func(s *corev1beta1.Shoot) {
		s.Status.LastOperation = &corev1beta1.LastOperation{Type: "Create", State: "Succeeded", LastUpdateTime: metav1.Now()}
	})
	generation := s.Generation
	maintained := func(state corev1beta1.LastOperationState, want string) {
		t.Helper()
		edit(t, g, s, func(s *corev1beta1.Shoot) { s.Annotations["gardener.cloud/operation"] = "maintain" })
		s = env.Await(t, g.client, s, func(s *corev1beta1.Shoot) error {
			last, operation := s.Status.LastMaintenance, s.Annotations["gardener.cloud/operation"]
			if last == nil || last.State != state || operation != "" {
				return fmt.Errorf("the last maintenance is %v, operation %q is pending", last, operation)
			}
			return nil
		})
		got := fmt.Sprintf("%s %s, generation +%d", s.Spec.Kubernetes.Version, *s.Spec.Provider.Workers[0].Machine.Image.Version, s.Generation-generation)
		if got != want {
			t.Errorf("after a maintenance the Shoot is at %s, want %s; %v", got, want, s.Status.LastMaintenance)
		}
	}
	maintained("Succeeded", "1.35.5 2.0.0, generation +1")
	const want = "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress,restartControlPlanePods"
	if tasks := s.Annotations["shoot.gardener.cloud/tasks"]; tasks != want {
		t.Errorf("tasks are %q", tasks)
	}
	awaitEvent(t, g, "maintained", "KubernetesVersionMaintenance")
	awaitEvent(t, g, "maintained", "MachineImageVersionMaintenance")

	// Kubernetes 1.36 does not have this API, so that the update is rejected.
	edit(t, g, s, func(s *corev1beta1.Shoot) {
		s.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
			RuntimeConfig: map[string]bool{"scheduling.k8s.io/v1alpha1": true},
		}
	})
	generation = s.Generation
	edit(t, g, profile, func(p *corev1beta1.CloudProfile) {
		p.Spec.Kubernetes.Versions = []corev1beta1.ExpirableVersion{{Version: "1.36.1"}}
	})
	g.awaitCached(t, profile)
	maintained("Failed", "1.35.5 2.0.0, generation +1")
	awaitEvent(t, g, "maintained", "MaintenanceFailed")
}

// testRestart changes objects while no controllers run.
func testRestart(t *testing.T, g *garden) {
	g.create(t, namespace("garden-away", nil))
	credentials, resource := secret("garden-away", "credentials"), secret("garden-away", "resource")
	profile := builder.CloudProfile("away", builder.Versions("1.36.1"))
	binding := credentialsBinding("garden-away", "away", corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden-away", Name: "credentials"})
	s := shoot("garden-away", "away", withWorkers("away"), func(s *corev1beta1.Shoot) {
		s.Spec.CloudProfile.Name = "away"
		s.Spec.Resources = []corev1beta1.NamedResourceReference{
			{Name: "r", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "resource"}},
		}
	})
	p := project("away")
	g.create(t, profile, credentials, resource, binding, s, p)
	env.Await(t, g.client, s, hasFinalizer[*corev1beta1.Shoot](referenceProtection, true))
	env.Await(t, g.client, binding, hasFinalizer[*securityv1alpha1.CredentialsBinding]("gardener", true))
	env.Await(t, g.client, profile, hasFinalizer[*corev1beta1.CloudProfile]("gardener", true))
	awaitPhase(t, g, "away", corev1beta1.ProjectReady)
	env.Await(t, g.client, resource, hasFinalizer[*corev1.Secret](referenceProtection, true))
	env.Await(t, g.client, credentials, hasFinalizer[*corev1.Secret]("gardener.cloud/credentialsbinding", true))
	g.stop(t)

	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	g.delete(t, s, binding, profile, credentials, resource, p)
	for _, obj := range []client.Object{s, binding} { // as if a user had removed the finalizers
		edit(t, g, obj, func(o client.Object) { o.SetFinalizers(nil) })
	}
	late := project("late", func(p *corev1beta1.Project) {
		p.Finalizers, p.Spec.Namespace = []string{"gardener"}, new("garden-late") // a reconciliation was interrupted here
	})
	g.create(t, late)
	g.start(t)
	env.AwaitGone(t, g.client, credentials)
	env.AwaitGone(t, g.client, resource)
	env.AwaitGone(t, g.client, profile)
	g.finishNamespace(t, *p.Spec.Namespace)
	env.AwaitGone(t, g.client, p)
	awaitPhase(t, g, "late", corev1beta1.ProjectReady)
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(s), s); !apierrors.IsNotFound(err) {
		t.Errorf("get Shoot: %v, want not found", err)
	}
}
