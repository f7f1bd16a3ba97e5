package providerlocal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/provider/local"
	"gardener.cloud/gardener/pkg/helm"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

const ofAdmission = "extension-provider-local"

// startAdmission runs the admission controller with a garden, as the ServiceAccount that gardener-operator gives it, so that what its role lacks shows. It
// returns a function that stops it.
func startAdmission(t *testing.T) (client.WithWatch, func()) {
	t.Helper()
	logf.SetLogger(logr.Discard())
	e := env.Start(t, env.Lenient("ExtensionLabels"))
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ofAdmission}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: builder.Namespace}})
	archive, err := charts.Archive(charts.ProviderLocalAdmissionApplication)
	if err != nil {
		t.Fatal(err)
	}
	account := map[string]any{"name": "extension-admission-provider-local", "namespace": "kube-system"}
	rendered, err := helm.Render(archive, helm.Release{
		Name: local.Name, Namespace: ofAdmission, Kubernetes: version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"},
		Values: map[string]any{"gardener": map[string]any{"virtualCluster": map[string]any{"serviceAccount": account}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range rendered {
		create(t, c, object)
	}
	o := local.NewAdmissionOptions()
	o.MetricsBindAddress, o.HealthBindAddress = "0", "0"
	// The Service is in the runtime cluster, which this test does not have.
	o.WebhookNamespace, o.WebhookOwnerNamespace, o.WebhookMode = "garden", ofAdmission, "url"
	o.WebhookServerHost, o.WebhookServerPort = address, ports.Free(t, 1)[0]
	o.WebhookURL = fmt.Sprintf("%s:%d", address, o.WebhookServerPort)
	scheme, err := local.NewAdmissionScheme()
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(e.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kube-system:extension-admission-provider-local",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
	}
	mgr, err := o.NewManager(config, scheme, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if err := local.AddAdmission(mgr, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return c, stop
}

// refused returns an error unless a request was refused as invalid, with a message.
func refused(err error, message string) error {
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), message) {
		return fmt.Errorf("the answer is %v, want it to be refused with %q", err, message) //nolint:errorlint // it may be nil
	}
	return nil
}

// profileConfig is the configuration of provider-local in cloud profiles, with an image for a version.
func profileConfig(version string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(`{"apiVersion":"local.provider.extensions.gardener.cloud/v1alpha1","kind":"CloudProfileConfig",` +
		`"machineImages":[{"name":"local","versions":[{"version":"` + version + `","image":"registry.example.com/machine:` + version + `"}]}]}`)}
}

func credentialsOf(name, kubeconfig string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: builder.Namespace, Name: name, Labels: labels}, Data: map[string][]byte{"kubeconfig": []byte(kubeconfig)}}
}

// namespacedProfile adds a version of the machine image to the profile "local".
func namespacedProfile(config *runtime.RawExtension) *corev1beta1.NamespacedCloudProfile {
	return &corev1beta1.NamespacedCloudProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: builder.Namespace, Name: "more"},
		Spec: corev1beta1.NamespacedCloudProfileSpec{
			Parent: corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, ProviderConfig: config,
			MachineImages: []corev1beta1.MachineImage{{Name: "local", Versions: []corev1beta1.MachineImageVersion{{
				ExpirableVersion: corev1beta1.ExpirableVersion{Version: "2.0.0"}, CRI: []corev1beta1.CRI{{Name: corev1beta1.CRINameContainerD}},
				Architectures: []string{"amd64"},
			}}}},
		},
	}
}

// TestAdmission has the webhooks of provider-local called by gardener-apiserver and the kube-apiserver of a garden.
func TestAdmission(t *testing.T) {
	c, stop := startAdmission(t)
	usesProfile := map[string]string{"provider.shoot.gardener.cloud/local": "true"}
	const noKubeconfig = "t0ken"

	step := env.Story(t)
	step("both API servers call them")
	env.AwaitRequest(t, func(ctx context.Context) error {
		return refused(c.Create(ctx, builder.CloudProfile("local"), client.DryRunAll), "spec.providerConfig: Required value")
	})
	env.AwaitRequest(t, func(ctx context.Context) error {
		return refused(c.Create(ctx, credentialsOf("wrong", noKubeconfig, usesProfile), client.DryRunAll), "data[kubeconfig]: Invalid value")
	})

	step("what is right is created")
	profile := builder.CloudProfile("local", func(p *corev1beta1.CloudProfile) { p.Spec.ProviderConfig = profileConfig("1.0.0") })
	shoot := builder.Shoot("right", builder.Workers(1), func(s *corev1beta1.Shoot) { s.Spec.Networking.Type = new("flannel") })
	namespaced := namespacedProfile(profileConfig("2.0.0"))
	create(t, c, profile, shoot, credentialsOf("of-nobody", noKubeconfig, nil), credentialsOf("right", "", usesProfile))
	env.AwaitRequest(t, func(ctx context.Context) error { return c.Create(ctx, namespaced) }) // its parent has to be in the cache of gardener-apiserver

	step("what is wrong is refused, and says where")
	other := &runtime.RawExtension{Raw: []byte(`{"kind":"Other"}`)}
	for want, object := range map[string]client.Object{
		"spec.provider.infrastructureConfig: Invalid value": builder.Shoot("wrong", builder.Workers(1), func(s *corev1beta1.Shoot) { s.Spec.Provider.InfrastructureConfig = other }),
		"spec.provider.workers[1].providerConfig: Invalid value": builder.Shoot("wrong", builder.Workers(2), func(s *corev1beta1.Shoot) {
			s.Spec.Provider.Workers[1].ProviderConfig = other
		}),
		"spec.networking.providerConfig: Invalid value": builder.Shoot("wrong", builder.Workers(1), func(s *corev1beta1.Shoot) {
			s.Spec.Networking.Type, s.Spec.Networking.ProviderConfig = new("flannel"), other
		}),
		"spec.provider.workers[0].cri.containerRuntimes[0].providerConfig: Invalid value": builder.Shoot("wrong", builder.Workers(1), func(s *corev1beta1.Shoot) {
			s.Spec.Provider.Workers[0].CRI = &corev1beta1.CRI{
				Name: corev1beta1.CRINameContainerD, ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "crun", ProviderConfig: other}},
			}
		}),
		`unknown field "machineImages[0].flavors"`: builder.CloudProfile("wrong", func(p *corev1beta1.CloudProfile) {
			p.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(strings.Replace(string(profileConfig("1.0.0").Raw), `"versions"`, `"flavors":[],"versions"`, 1))}
		}),
		`spec.providerConfig.machineImages: Required value: version 2.0.0 of machine image "local"`: namespacedProfile(profileConfig("3.0.0")),
		"spec.backup.providerConfig: Invalid value": builder.Seed("wrong", func(s *corev1beta1.Seed) {
			s.Spec.Backup = &corev1beta1.Backup{Provider: "local", ProviderConfig: other, CredentialsRef: &s.Spec.DNS.Internal.CredentialsRef}
		}),
		"spec.providerConfig: Invalid value": &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "wrong"}, Spec: corev1beta1.BackupBucketSpec{
			Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "local"}, ProviderConfig: other, SeedName: new("local"),
			CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"},
		}},
		"credentialsRef: Invalid value": &securityv1alpha1.CredentialsBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: builder.Namespace, Name: "wrong"}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: builder.Namespace, Name: "of-nobody"},
		},
		"secretRef: Invalid value": &corev1beta1.SecretBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: builder.Namespace, Name: "wrong"}, Provider: &corev1beta1.SecretBindingProvider{Type: "local"},
			SecretRef: corev1.SecretReference{Namespace: builder.Namespace, Name: "of-nobody"},
		},
	} {
		if err := refused(c.Create(t.Context(), object), want); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
	if err := c.Create(t.Context(), builder.CloudProfile("other", func(p *corev1beta1.CloudProfile) { p.Spec.Type = "other" })); err != nil {
		t.Errorf("the profile of another provider is checked: %v", err)
	}

	step("the status of a NamespacedCloudProfile has the images of both profiles, also while it is being deleted")
	merged := func(ctx context.Context) error {
		namespaced.Status.CloudProfileSpec = profile.Spec.DeepCopy()
		if err := c.Status().Update(ctx, namespaced); err != nil {
			return errors.Join(err, c.Get(ctx, client.ObjectKeyFromObject(namespaced), namespaced))
		}
		raw := string(namespaced.Status.CloudProfileSpec.ProviderConfig.Raw)
		for _, image := range []string{"machine:1.0.0", "machine:2.0.0"} {
			if !strings.Contains(raw, image) {
				return fmt.Errorf("the merged configuration is %s, without %s", raw, image)
			}
		}
		return nil
	}
	env.AwaitRequest(t, merged)
	env.Edit(t, c, namespaced, func(p *corev1beta1.NamespacedCloudProfile) { p.Finalizers = []string{"gardener"} })
	if err := errors.Join(c.Delete(t.Context(), namespaced), c.Get(t.Context(), client.ObjectKeyFromObject(namespaced), namespaced), merged(t.Context())); err != nil {
		t.Error(err)
	}

	step("without the process, what cannot be wrong is possible")
	for _, object := range []client.Object{shoot, profile} {
		before := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
		object.SetFinalizers([]string{"gardener"})
		if err := c.Patch(t.Context(), object, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	env.Edit(t, c, shoot, func(s *corev1beta1.Shoot) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "changed", "true") })
	env.Edit(t, c, credentialsOf("of-nobody", "", nil), func(s *corev1.Secret) { s.Labels = usesProfile })
	addRegion := func() { profile.Spec.Regions = append(profile.Spec.Regions, corev1beta1.Region{Name: "other"}) }
	addRegion()
	if err := c.Update(t.Context(), profile); !apierrors.IsInternalError(err) {
		t.Errorf("a spec is changed without being checked: %v", err)
	}
	remove := func(object client.Object, change func()) {
		if err := errors.Join(c.Delete(t.Context(), object), c.Get(t.Context(), client.ObjectKeyFromObject(object), object)); err != nil {
			t.Fatal(err)
		}
		change()
		object.SetFinalizers(nil)
		if err := c.Update(t.Context(), object); err != nil {
			t.Fatalf("the deletion is held up: %v", err)
		}
	}
	remove(shoot, func() {})
	env.AwaitGone(t, c, shoot)
	remove(profile, addRegion)
	env.AwaitGone(t, c, profile)
}
