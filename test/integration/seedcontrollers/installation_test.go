package seedcontrollers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/test/env"
)

// installed waits until a seed has installations of exactly these registrations, and returns them by registration.
func (g *garden) installed(t *testing.T, seed string, want ...string) map[string]*corev1beta1.ControllerInstallation {
	t.Helper()
	var found map[string]*corev1beta1.ControllerInstallation
	env.AwaitList(t, g.client, func(installations []*corev1beta1.ControllerInstallation) error {
		found = map[string]*corev1beta1.ControllerInstallation{}
		names := []string{}
		for _, installation := range installations {
			if ref := installation.Spec.SeedRef; ref != nil && ref.Name == seed {
				found[installation.Spec.RegistrationRef.Name] = installation
				names = append(names, installation.Spec.RegistrationRef.Name)
			}
		}
		slices.Sort(names)
		if diff := cmp.Diff(append([]string{}, want...), names); diff != "" {
			return fmt.Errorf("installations in seed %s (-want +got):\n%s", seed, diff)
		}
		return nil
	})
	return found
}

// updated waits until a check of an installation succeeds.
func (g *garden) updated(t *testing.T, name string, check func(*corev1beta1.ControllerInstallation) error) {
	t.Helper()
	env.AwaitList(t, g.client, func(installations []*corev1beta1.ControllerInstallation) error {
		for _, installation := range installations {
			if installation.Name == name {
				return check(installation)
			}
		}
		return fmt.Errorf("installation %s not found", name)
	})
}

func (g *garden) testInstallations(t *testing.T) {
	always, exceptNoShoots := corev1beta1.ControllerDeploymentPolicyAlways, corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots
	here := &metav1.LabelSelector{MatchLabels: map[string]string{"in": "east"}}
	g.create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "pull"}, StringData: map[string]string{"a": "1"},
	}, &gardencorev1.ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "seed-infra"},
		Helm: &gardencorev1.HelmControllerDeployment{OCIRepository: &gardencorev1.OCIRepository{
			Ref: new("registry.example.com/chart:1"), PullSecretRef: &corev1.LocalObjectReference{Name: "pull"},
		}},
	})
	seedInfra := newRegistration("seed-infra", "ControlPlane", "infra-east")
	seedInfra.Annotations = map[string]string{constants.PodSecurityEnforce: "baseline"}
	seedInfra.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{DeploymentRefs: []corev1beta1.DeploymentRef{{Name: "seed-infra"}}}
	alwaysHere := newRegistration("always-east")
	alwaysHere.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{Policy: &always, SeedSelector: here}
	withShoots := newRegistration("with-shoots")
	withShoots.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{Policy: &exceptNoShoots, SeedSelector: here}
	seed := newSeed("east")
	seed.Labels = map[string]string{"in": "east"}
	g.create(t, seedInfra, alwaysHere, withShoots, newRegistration("seed-dns", "DNSRecord", "dns-east"),
		newRegistration("network", "Network", "net-botany"), newRegistration("unneeded", "Network", "none"), seed)

	installations := g.installed(t, "east", "always-east", "seed-dns", "seed-infra")
	installation := installations["seed-infra"]
	if installation.Annotations[constants.PodSecurityEnforce] != "baseline" || installation.Spec.DeploymentRef == nil || installation.Spec.DeploymentRef.Name != "seed-infra" {
		t.Errorf("installation has annotations %v and spec %v", installation.Annotations, installation.Spec)
	}
	if len(installation.Name)+len("extension-") > 63 {
		t.Errorf("name %q leaves no room for the namespace", installation.Name)
	}

	t.Run("a change of a Secret of the deployment updates the installation", func(t *testing.T) {
		g.updated(t, installation.Name, func(i *corev1beta1.ControllerInstallation) error {
			if len(i.Spec.ResourceRefs) != 1 || i.Spec.ResourceRefs[0].Name != "pull" {
				return fmt.Errorf("resource references are %v", i.Spec.ResourceRefs)
			}
			return nil
		})
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "pull"}}
		change(t, g, secret, func(s *corev1.Secret) { s.Data["a"] = []byte("2") })
		g.updated(t, installation.Name, func(i *corev1beta1.ControllerInstallation) error {
			if len(i.Spec.ResourceRefs) != 1 {
				return fmt.Errorf("resource references are %v, want one", i.Spec.ResourceRefs)
			}
			// A controller may have given the Secret a finalizer since.
			got := i.Spec.ResourceRefs[0].ResourceVersion
			newer, err := resourceversion.CompareResourceVersion(got, secret.ResourceVersion)
			if err == nil && newer < 0 {
				return fmt.Errorf("the version of the reference is %s, want %s", got, secret.ResourceVersion)
			}
			return err
		})
	})
	t.Run("a change of the registration updates the installation", func(t *testing.T) {
		change(t, g, seedInfra, func(r *corev1beta1.ControllerRegistration) {
			delete(r.Annotations, constants.PodSecurityEnforce)
			r.Spec.Resources = append(r.Spec.Resources, corev1beta1.ControllerResource{Kind: "Worker", Type: "infra-east"})
		})
		g.updated(t, installation.Name, func(i *corev1beta1.ControllerInstallation) error {
			if _, ok := i.Annotations[constants.PodSecurityEnforce]; ok || i.Spec.RegistrationRef.ResourceVersion == installation.Spec.RegistrationRef.ResourceVersion {
				return fmt.Errorf("annotations %v, registration %v", i.Annotations, i.Spec.RegistrationRef)
			}
			return nil
		})
	})
	t.Run("a change by a user is reverted", func(t *testing.T) {
		change(t, g, installation, func(i *corev1beta1.ControllerInstallation) { i.Spec.DeploymentRef = nil })
		g.updated(t, installation.Name, func(i *corev1beta1.ControllerInstallation) error {
			if i.Spec.DeploymentRef == nil {
				return fmt.Errorf("spec.deploymentRef is missing")
			}
			return nil
		})
	})
	t.Run("a shoot installs the extensions that it needs, and its deletion uninstalls them", func(t *testing.T) {
		shoot := newShoot("botany", "east")
		g.create(t, shoot)
		network := g.installed(t, "east", "always-east", "network", "seed-dns", "seed-infra", "with-shoots")["network"]
		// While the gardenlet reports that there are extension resources, the installation stays.
		changeStatus(t, g, network, func(i *corev1beta1.ControllerInstallation) {
			i.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.ControllerInstallationRequired, Status: corev1beta1.ConditionTrue}}
		})
		change(t, g, shoot, func(s *corev1beta1.Shoot) {
			s.Annotations = map[string]string{constants.ConfirmationDeletion: "true"}
		})
		g.delete(t, shoot)
		env.AwaitGone(t, g.client, shoot)
		g.installed(t, "east", "always-east", "network", "seed-dns", "seed-infra")
		changeStatus(t, g, network, func(i *corev1beta1.ControllerInstallation) {
			i.Status.Conditions[0].Status = corev1beta1.ConditionFalse
		})
		g.installed(t, "east", "always-east", "seed-dns", "seed-infra")
	})
	t.Run("installations follow the labels of the seed", func(t *testing.T) {
		change(t, g, seed, func(s *corev1beta1.Seed) { s.Labels = nil })
		g.installed(t, "east", "seed-dns", "seed-infra")
		change(t, g, seed, func(s *corev1beta1.Seed) { s.Labels = map[string]string{"in": "east"} })
		g.installed(t, "east", "always-east", "seed-dns", "seed-infra")
	})
	t.Run("backup buckets and entries need their provider", func(t *testing.T) {
		g.create(t, newRegistration("backup", "BackupBucket", "store"), newRegistration("entries", "BackupEntry", "store"))
		bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"}, Spec: corev1beta1.BackupBucketSpec{
			Provider: corev1beta1.BackupBucketProvider{Type: "store", Region: "r"}, SeedName: new("east"),
			CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"},
		}}
		g.create(t, bucket)
		g.installed(t, "east", "always-east", "backup", "seed-dns", "seed-infra")
		entry := &corev1beta1.BackupEntry{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "entry"},
			Spec:       corev1beta1.BackupEntrySpec{BucketName: "bucket", SeedName: new("east")},
		}
		g.create(t, entry)
		g.installed(t, "east", "always-east", "backup", "entries", "seed-dns", "seed-infra")
		g.delete(t, entry)
		g.delete(t, bucket)
		g.installed(t, "east", "always-east", "seed-dns", "seed-infra")
	})
}

func (g *garden) testSelfHosted(t *testing.T) {
	g.create(t, newRegistration("self", "ControlPlane", "infra-self"))
	shoot := newShoot("self", "")
	shoot.Namespace, shoot.Spec.SeedName = "garden", nil
	shoot.Spec.Provider.Workers[0].ControlPlane = &corev1beta1.WorkerControlPlane{}
	shoot.Spec.Provider.Workers[0].Minimum, shoot.Spec.Provider.Workers[0].Maximum = 1, 1
	g.create(t, shoot)
	var installation *corev1beta1.ControllerInstallation
	env.AwaitList(t, g.client, func(installations []*corev1beta1.ControllerInstallation) error {
		for _, i := range installations {
			if ref := i.Spec.ShootRef; ref != nil && ref.Name == "self" && ref.Namespace == "garden" && i.Spec.RegistrationRef.Name == "self" {
				installation = i
				return nil
			}
		}
		return fmt.Errorf("no installation for the shoot")
	})
	guarded(t, g, shoot, constants.FinalizerControllerRegistration)
	change(t, g, shoot, func(s *corev1beta1.Shoot) { s.Annotations = map[string]string{constants.ConfirmationDeletion: "true"} })
	g.delete(t, shoot)
	env.AwaitGone(t, g.client, installation)
	env.AwaitGone(t, g.client, shoot)
}

func (g *garden) testFinalizers(t *testing.T) {
	seed, registration := newSeed("north"), newRegistration("north", "ControlPlane", "infra-north")
	deployment := &gardencorev1.ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "north"},
		Helm:       &gardencorev1.HelmControllerDeployment{OCIRepository: &gardencorev1.OCIRepository{Ref: new("registry.example.com/chart:1")}},
	}
	registration.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{DeploymentRefs: []corev1beta1.DeploymentRef{{Name: "north"}}}
	g.create(t, deployment, registration, seed)
	installation := g.installed(t, "north", "north")["north"]
	// As the gardenlet does when it installs it.
	change(t, g, installation, func(i *corev1beta1.ControllerInstallation) {
		i.Finalizers = []string{constants.FinalizerControllerInstallation}
	})
	guarded(t, g, seed, constants.FinalizerControllerRegistration)
	guarded(t, g, registration, constants.FinalizerControllerRegistration)
	guarded(t, g, deployment, constants.FinalizerControllerDeployment)
	g.delete(t, deployment)
	g.delete(t, registration)
	g.delete(t, seed)
	// All of them wait for the installation, which the controller deletes as it is not needed any more.
	env.AwaitList(t, g.client, func(installations []*corev1beta1.ControllerInstallation) error {
		for _, i := range installations {
			if i.Name == installation.Name && i.DeletionTimestamp == nil {
				return fmt.Errorf("the installation is not being deleted")
			}
		}
		return nil
	})
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(seed), seed); err != nil {
		t.Errorf("seed: %v, want it to wait for its installation", err)
	}
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(registration), registration); err != nil {
		t.Errorf("registration: %v, want it to wait for its installation", err)
	}
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Errorf("deployment: %v, want it to wait for its registration", err)
	}
	change(t, g, installation, func(i *corev1beta1.ControllerInstallation) { i.Finalizers = nil })
	env.AwaitGone(t, g.client, seed)
	env.AwaitGone(t, g.client, registration)
	env.AwaitGone(t, g.client, deployment)
}
