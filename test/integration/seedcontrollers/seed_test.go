package seedcontrollers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
	"gardener.cloud/gardener/test/env"
)

func (g *garden) testReferences(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "dns"}}
	g.create(t, secret)
	guarded := func(want bool) {
		t.Helper()
		env.AwaitList(t, g.client, func(secrets []*corev1.Secret) error {
			for _, s := range secrets {
				if s.Name == "dns" && slices.Contains(s.Finalizers, constants.FinalizerReferenceProtection) != want {
					return fmt.Errorf("finalizers are %v", s.Finalizers)
				}
			}
			return nil
		}, client.InNamespace("garden"))
	}
	seed := newSeed("west")
	g.create(t, seed)
	guarded(true)
	// Other seeds name it too, so these have to change first.
	for _, name := range []string{"east", "west"} {
		change(t, g, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(s *corev1beta1.Seed) {
			s.Spec.DNS.Provider.CredentialsRef.Name, s.Spec.DNS.Internal.CredentialsRef.Name = "dns-other", "dns-other"
		})
	}
	guarded(false)
	g.delete(t, seed)
	env.AwaitGone(t, g.client, seed)
}

func (g *garden) testClusterRoles(t *testing.T) {
	g.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	account := func(namespace, name string, labels map[string]string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	}
	selected := map[string]string{"extension": "yes"}
	second := account("seed-east", "b", selected)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name:        "extension",
		Labels:      map[string]string{"authorization.gardener.cloud/custom-extensions-permissions": "true"},
		Annotations: map[string]string{"authorization.gardener.cloud/extensions-serviceaccount-selector": `{"matchLabels":{"extension":"yes"}}`},
	}}
	env.Await(t, g.client, env.Named[*corev1.Namespace]("", "seed-east"), env.Exists)
	g.create(t, account("seed-east", "a", selected), account("seed-east", "c", nil), account("other", "d", selected), role)
	bound := func(want ...string) {
		t.Helper()
		env.AwaitList(t, g.client, func(bindings []*rbacv1.ClusterRoleBinding) error {
			got := []string{}
			for _, binding := range bindings {
				if binding.Name == "extension" {
					for _, subject := range binding.Subjects {
						got = append(got, subject.Namespace+"/"+subject.Name)
					}
				}
			}
			if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
				return fmt.Errorf("subjects (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	bound("seed-east/a")
	g.create(t, second)
	bound("seed-east/a", "seed-east/b")
	g.delete(t, second)
	bound("seed-east/a")
	change(t, g, role, func(r *rbacv1.ClusterRole) { r.Labels = nil })
	env.AwaitGone(t, g.client, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "extension"}})
}

func (g *garden) testSecrets(t *testing.T) {
	shared := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: "domain", Labels: map[string]string{constants.GardenRole: constants.GardenRoleDefaultDomain},
			Annotations: map[string]string{constants.DNSProvider: "unmanaged", constants.DNSDomain: "example.com"},
		},
		Data: map[string][]byte{"key": []byte("one")},
	}
	shootSecret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden", Name: "shoot.kubeconfig", Labels: map[string]string{constants.GardenRole: constants.GardenRoleKubeconfig},
	}}
	immutable := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "fixed", Labels: map[string]string{constants.GardenRole: constants.GardenRoleAlerting}},
		Data:       map[string][]byte{"key": []byte("one")}, Immutable: new(true),
	}
	g.create(t, shared, shootSecret, immutable, newSeed("south"))
	copies := func(want map[string]string) {
		t.Helper()
		env.AwaitList(t, g.client, func(secrets []*corev1.Secret) error {
			got := map[string]string{}
			for _, secret := range secrets {
				got[secret.Name] = string(secret.Data["key"])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("secrets (-want +got):\n%s", diff)
			}
			return nil
		}, client.InNamespace("seed-south"))
	}
	copies(map[string]string{"domain": "one", "fixed": "one"})
	change(t, g, shared, func(s *corev1.Secret) { s.Data["key"] = []byte("two") })
	copies(map[string]string{"domain": "two", "fixed": "one"})
	// A copy that a user changed or deleted is corrected.
	change(t, g, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-south", Name: "domain"}}, func(s *corev1.Secret) { s.Data["key"] = []byte("three") })
	copies(map[string]string{"domain": "two", "fixed": "one"})
	g.delete(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-south", Name: "domain"}})
	copies(map[string]string{"domain": "two", "fixed": "one"})
	// The copy of an immutable Secret is deleted with it.
	g.delete(t, immutable)
	copies(map[string]string{"domain": "two"})
	g.delete(t, shared)
	copies(map[string]string{})
	namespace := &corev1.Namespace{}
	if err := g.client.Get(t.Context(), client.ObjectKey{Name: "seed-south"}, namespace); err != nil {
		t.Fatal(err)
	}
	if owner := metav1.GetControllerOf(namespace); owner == nil || owner.Kind != "Seed" || namespace.Labels[constants.GardenRole] != constants.GardenRoleSeed {
		t.Errorf("namespace has owner %v and labels %v", owner, namespace.Labels)
	}
}

// condition waits until a seed has a condition with a status. An empty status means that the condition is missing.
func (g *garden) condition(t *testing.T, seed string, typ corev1beta1.ConditionType, want corev1beta1.ConditionStatus) {
	t.Helper()
	env.Await(t, g.client, env.Named[*corev1beta1.Seed]("", seed), func(s *corev1beta1.Seed) error {
		condition := kube.Condition(s.Status.Conditions, typ)
		if condition == nil && want == "" || condition != nil && condition.Status == want {
			return nil
		}
		return fmt.Errorf("condition is %v, want %q", condition, want)
	})
}

func (g *garden) testCare(t *testing.T) {
	seed := newSeed("care")
	g.create(t, seed)
	// Without installations, the condition is True. Only a condition that was True turns Progressing first, so the cache must have it.
	g.condition(t, "care", corev1beta1.SeedExtensionsReady, corev1beta1.ConditionTrue)
	g.awaitCached(t, seed)
	g.create(t, newRegistration("care", "ControlPlane", "infra-care"))
	installation := g.installed(t, "care", "care")["care"]
	report := func(healthy corev1beta1.ConditionStatus) {
		changeStatus(t, g, installation, func(i *corev1beta1.ControllerInstallation) {
			i.Status.Conditions = nil
			for typ, status := range map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
				corev1beta1.ControllerInstallationValid: corev1beta1.ConditionTrue, corev1beta1.ControllerInstallationInstalled: corev1beta1.ConditionTrue,
				corev1beta1.ControllerInstallationHealthy: healthy, corev1beta1.ControllerInstallationProgressing: corev1beta1.ConditionFalse,
			} {
				i.Status.Conditions = append(i.Status.Conditions, corev1beta1.Condition{Type: typ, Status: status})
			}
		})
	}
	g.condition(t, "care", corev1beta1.SeedExtensionsReady, corev1beta1.ConditionProgressing)
	report(corev1beta1.ConditionTrue)
	g.condition(t, "care", corev1beta1.SeedExtensionsReady, corev1beta1.ConditionTrue)
	report(corev1beta1.ConditionFalse)
	g.condition(t, "care", corev1beta1.SeedExtensionsReady, corev1beta1.ConditionProgressing)
	g.clock.Step(61 * time.Second)
	g.condition(t, "care", corev1beta1.SeedExtensionsReady, corev1beta1.ConditionFalse)
	report(corev1beta1.ConditionTrue)
	g.condition(t, "care", corev1beta1.SeedExtensionsReady, corev1beta1.ConditionTrue)

	g.condition(t, "care", corev1beta1.SeedBackupBucketsReady, "")
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "care"}, Spec: corev1beta1.BackupBucketSpec{
		Provider: corev1beta1.BackupBucketProvider{Type: "store", Region: "r"}, SeedName: new("care"),
		CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"},
	}}
	g.create(t, bucket)
	g.condition(t, "care", corev1beta1.SeedBackupBucketsReady, corev1beta1.ConditionTrue)
	changeStatus(t, g, bucket, func(b *corev1beta1.BackupBucket) { b.Status.LastError = &corev1beta1.LastError{Description: "quota"} })
	g.condition(t, "care", corev1beta1.SeedBackupBucketsReady, corev1beta1.ConditionFalse)
	changeStatus(t, g, bucket, func(b *corev1beta1.BackupBucket) { b.Status.LastError = nil })
	g.condition(t, "care", corev1beta1.SeedBackupBucketsReady, corev1beta1.ConditionTrue)
	g.delete(t, bucket)
	g.condition(t, "care", corev1beta1.SeedBackupBucketsReady, "")
}

func (g *garden) testLifecycle(t *testing.T) {
	seed, shoot, moved, leaving := newSeed("stopped"), newShoot("stopped", "stopped"), newShoot("moved", "stopped"), newShoot("leaving", "south")
	// This one is a seed itself, and has conditions of that.
	managed, soil := newSeed("soil"), newShoot("soil", "stopped")
	soil.Namespace = "garden"
	g.create(t, seed, shoot, moved, leaving, managed, soil, &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "soil"},
		Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: "soil"}, Gardenlet: gardenletConfig(t, managed)},
	}, &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "stopped"},
		Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: "stopped"}, Gardenlet: gardenletConfig(t, seed)},
	})
	for _, s := range []*corev1beta1.Shoot{shoot, moved, leaving} {
		changeStatus(t, g, s, func(s *corev1beta1.Shoot) {
			s.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.ShootAPIServerAvailable, Status: corev1beta1.ConditionTrue}}
			s.Status.Constraints = []corev1beta1.Condition{{Type: corev1beta1.ShootHibernationPossible, Status: corev1beta1.ConditionFalse}}
		})
	}
	// This one still belongs to another seed.
	changeStatus(t, g, moved, func(s *corev1beta1.Shoot) { s.Status.SeedName = new("south") })
	changeStatus(t, g, leaving, func(s *corev1beta1.Shoot) { s.Status.SeedName = new("stopped") })
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gardener-system-seed-lease", Name: "stopped"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(g.clock.Now()))},
	}
	g.create(t, lease)
	changeStatus(t, g, seed, func(s *corev1beta1.Seed) {
		s.Status.Conditions = append(s.Status.Conditions, corev1beta1.Condition{
			Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(g.clock.Now()), LastUpdateTime: metav1.NewTime(g.clock.Now()),
		})
		s.Status.ClientCertificateExpirationTimestamp = new(metav1.NewTime(g.clock.Now().Add(4 * time.Minute)))
	})
	g.clock.Step(41 * time.Second)
	g.condition(t, "stopped", corev1beta1.SeedGardenletReady, corev1beta1.ConditionUnknown)
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil || shoot.Status.Conditions[0].Status != corev1beta1.ConditionTrue {
		t.Errorf("shoot: %v, %v", err, shoot.Status.Conditions)
	}
	g.clock.Step(4 * time.Minute)
	env.AwaitList(t, g.client, func(shoots []*corev1beta1.Shoot) error {
		for _, s := range shoots {
			if s.Name == "stopped" && (s.Status.Conditions[0].Status != corev1beta1.ConditionUnknown || s.Status.Constraints[0].Status != corev1beta1.ConditionUnknown) {
				return fmt.Errorf("conditions are %v and %v", s.Status.Conditions, s.Status.Constraints)
			}
			if s.Name == "moved" && s.Status.Conditions[0].Status != corev1beta1.ConditionTrue {
				t.Errorf("the shoot of another seed has conditions %v", s.Status.Conditions)
			}
		}
		return nil
	})
	// What other controllers write is not turned to Unknown: testSteadyState shows that they do not undo the changes of each other.
	env.Await(t, g.client, leaving, func(s *corev1beta1.Shoot) error {
		hibernation, ready := kube.Condition(s.Status.Constraints, corev1beta1.ShootHibernationPossible), kube.Condition(s.Status.Constraints, corev1beta1.ShootReadyForMigration)
		if hibernation.Status != corev1beta1.ConditionUnknown || ready == nil || ready.Status != corev1beta1.ConditionFalse {
			return fmt.Errorf("constraints are %v", s.Status.Constraints)
		}
		return nil
	})
	env.Await(t, g.client, soil, func(s *corev1beta1.Shoot) error {
		if ready := kube.Condition(s.Status.Conditions, corev1beta1.SeedExtensionsReady); ready == nil || ready.Status != corev1beta1.ConditionTrue {
			return fmt.Errorf("conditions are %v", s.Status.Conditions)
		}
		return nil
	})
	env.Await(t, g.client, env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "stopped"), func(s *seedmanagementv1alpha1.ManagedSeed) error {
		if s.Annotations[constants.GardenerTimestamp] == "" {
			return fmt.Errorf("annotations are %v", s.Annotations)
		}
		return nil
	})
	// Otherwise it would be annotated again later.
	changeStatus(t, g, seed, func(s *corev1beta1.Seed) {
		s.Status.ClientCertificateExpirationTimestamp = new(metav1.NewTime(g.clock.Now().Add(1000 * time.Hour)))
	})
}

func (g *garden) testCertificates(t *testing.T) {
	g.create(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}},
			{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/seedclient"}, Verbs: []string{"create"}},
		},
	}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "bootstrap"},
		Subjects:   []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "bootstrappers"}},
	}, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-abcdef"},
		StringData: map[string]string{"description": bootstraptoken.ForSeed("east")},
	}, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "csr"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}}},
	}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "csr"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "csr"},
		Subjects:   []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "others"}},
	})
	request := func(name, group string) {
		t.Helper()
		config := rest.CopyConfig(g.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:bootstrap:abcdef", Groups: []string{group}}
		c, err := client.New(config, client.Options{Scheme: g.Scheme})
		if err != nil {
			t.Fatal(err)
		}
		csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: certificateRequest(t), SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		}}
		env.AwaitRequest(t, func(ctx context.Context) error { return c.Create(ctx, csr) }) // until the API server has observed the role
	}
	request("not-allowed", "others")
	request("allowed", "bootstrappers")
	env.AwaitList(t, g.client, func(requests []*certificatesv1.CertificateSigningRequest) error {
		approved := map[string]bool{}
		for _, csr := range requests {
			approved[csr.Name] = len(csr.Status.Conditions) > 0 && csr.Status.Conditions[0].Type == certificatesv1.CertificateApproved
		}
		if diff := cmp.Diff(map[string]bool{"allowed": true, "not-allowed": false}, approved); diff != "" {
			return fmt.Errorf("approved (-want +got):\n%s", diff)
		}
		return nil
	})
}

func certificateRequest(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: "gardener.cloud:system:seed:east", Organization: []string{"gardener.cloud:system:seeds"},
	}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// testSteadyState restarts the controllers, and checks that nothing is written when nothing has changed. An object that was deleted in
// between loses its finalizer.
func (g *garden) testSteadyState(t *testing.T) {
	g.installed(t, "east", "always-east", "seed-dns", "seed-infra", "with-shoots")
	// The test of events has set the clock beyond all thresholds. Let the controllers act on that first.
	env.AwaitList(t, g.client, func(seeds []*corev1beta1.Seed) error {
		for _, seed := range seeds {
			for _, condition := range seed.Status.Conditions {
				if condition.Status == corev1beta1.ConditionProgressing {
					return fmt.Errorf("condition %s of Seed %q is still Progressing", condition.Type, seed.Name)
				}
			}
		}
		return nil
	})
	g.stop()
	g.delete(t, &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "unneeded"}})
	// A heartbeat changes the resource version of a Seed that installations refer to, but nothing that they depend on.
	changeStatus(t, g, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, func(s *corev1beta1.Seed) { s.Status.KubernetesVersion = new("1.35.4") })
	before := g.versions(t)
	g.start(t)
	env.AwaitGone(t, g.client, &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "unneeded"}})
	// A new Seed is reconciled by all controllers for Seeds. When it has its conditions, any other write would have happened, too.
	extra := newSeed("extra")
	g.create(t, extra)
	g.condition(t, "extra", corev1beta1.SeedExtensionsReady, corev1beta1.ConditionTrue)
	g.awaitCached(t, extra)
	g.create(t, newRegistration("extra", "ControlPlane", "infra-extra"))
	g.installed(t, "extra", "extra")
	g.condition(t, "extra", corev1beta1.SeedExtensionsReady, corev1beta1.ConditionProgressing)
	after := g.versions(t)
	maps.DeleteFunc(after, func(name, _ string) bool { return strings.Contains(name, "extra") })
	maps.DeleteFunc(before, func(name, _ string) bool { return strings.Contains(name, "unneeded") })
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("objects were written without a change (-before +after):\n%s", diff)
	}
}

// versions returns the resource versions of everything that the controllers write.
func (g *garden) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{
		&corev1beta1.SeedList{}, &corev1beta1.ShootList{}, &corev1beta1.ControllerInstallationList{}, &corev1beta1.ControllerRegistrationList{},
		&corev1.SecretList{}, &rbacv1.ClusterRoleBindingList{}, &seedmanagementv1alpha1.ManagedSeedList{},
	} {
		if err := g.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		err := eachItem(list, func(obj client.Object) {
			versions[fmt.Sprintf("%T %s", obj, client.ObjectKeyFromObject(obj))] = obj.GetResourceVersion()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return versions
}
