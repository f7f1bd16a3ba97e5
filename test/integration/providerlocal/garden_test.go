package providerlocal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/miekg/dns"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/provider/local"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/contract"
	"gardener.cloud/gardener/pkg/helm"
	"gardener.cloud/gardener/test/env"
)

// TestGarden runs two processes in one cluster, which is the runtime cluster of a garden and a seed: one for the garden and one for the seed. Each has the
// ServiceAccount and the permissions of the chart, so that what they lack shows.
func TestGarden(t *testing.T) {
	const gardenNamespace, runtimeNamespace, seedNamespace = "garden", "runtime-extension-provider-local", "extension-provider-local-abcde"
	e, c := cluster(t, crds.Extensions, crds.Machine, crds.Resources)
	for _, name := range []string{gardenNamespace, runtimeNamespace, seedNamespace, namespace} {
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})); err != nil {
			t.Fatal(err)
		}
	}
	install(t, c, runtimeNamespace, map[string]any{"runtimeCluster": map[string]any{"enabled": "true", "priorityClassName": "gardener-garden-system-200"}})
	install(t, c, seedNamespace, map[string]any{"seed": map[string]any{"name": "local"}})
	directory, port := run(t, e, as(e.Config, runtimeNamespace), runtimeNamespace, extensionsv1alpha1.ExtensionClassGarden)
	_, seedPort := run(t, e, as(e.Config, seedNamespace), seedNamespace)

	class := new(extensionsv1alpha1.ExtensionClassGarden)
	spec := func() extensionsv1alpha1.DefaultSpec {
		return extensionsv1alpha1.DefaultSpec{Type: "local", Class: class}
	}
	secret := corev1.SecretReference{Namespace: runtimeNamespace, Name: "generated-bucket-bucket"}
	record := func(name string) *extensionsv1alpha1.DNSRecord {
		return &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: gardenNamespace, Name: name}, Spec: extensionsv1alpha1.DNSRecordSpec{
			DefaultSpec: spec(), SecretRef: corev1.SecretReference{Namespace: gardenNamespace, Name: "dns"}, Name: name + ".local.example", RecordType: "A", Values: []string{"10.0.0.1"},
		}}
	}
	number := 0
	next := func(prefix string) string {
		number++
		return prefix + string(rune('a'+number))
	}
	t.Run("DNSRecord", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c, Immovable: true,
			New: func() extensionsv1alpha1.Object { return record(next("garden-")) },
			// The server of the seed has the name too, as both serve one zone.
			Fulfilled: func(t *testing.T, o extensionsv1alpha1.Object) {
				if err := errors.Join(resolve(t.Context(), port, o.GetName(), dns.RcodeSuccess), resolve(t.Context(), seedPort, o.GetName(), dns.RcodeSuccess)); err != nil {
					t.Error(err)
				}
			},
			Gone: func(t *testing.T, o extensionsv1alpha1.Object) {
				if err := errors.Join(resolve(t.Context(), port, o.GetName(), dns.RcodeNameError), resolve(t.Context(), seedPort, o.GetName(), dns.RcodeNameError)); err != nil {
					t.Error(err)
				}
			},
		})
	})
	t.Run("BackupBucket", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c, Immovable: true,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: next("bucket-")}, Spec: extensionsv1alpha1.BackupBucketSpec{
					DefaultSpec: spec(), Region: "local", SecretRef: corev1.SecretReference{Namespace: gardenNamespace, Name: "backup"},
				}}
			},
			Fulfilled: func(t *testing.T, o extensionsv1alpha1.Object) {
				ref := o.(*extensionsv1alpha1.BackupBucket).Status.GeneratedSecretRef
				if _, err := os.Stat(filepath.Join(directory, o.GetName())); err != nil || ref == nil || ref.Namespace != runtimeNamespace {
					t.Errorf("the bucket has Secret %v: %v", ref, err)
				}
			},
			Gone: func(t *testing.T, o extensionsv1alpha1.Object) {
				if _, err := os.Stat(filepath.Join(directory, o.GetName())); !os.IsNotExist(err) {
					t.Errorf("the bucket is still there (%v)", err)
				}
			},
		})
	})
	t.Run("BackupEntry", func(t *testing.T) {
		create(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}})
		contract.Run(t, contract.Suite{
			Client: c, Immovable: true,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: next("garden--")}, Spec: extensionsv1alpha1.BackupEntrySpec{
					DefaultSpec: spec(), Region: "local", BucketName: "bucket", SecretRef: secret,
				}}
			},
			Fulfilled: func(t *testing.T, _ extensionsv1alpha1.Object) {
				access := &corev1.Secret{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: gardenNamespace, Name: "etcd-backup"}, access); err != nil || string(access.Data["bucketName"]) != "bucket" {
					t.Errorf("access: %v", err)
				}
			},
		})
	})
	// Both processes observe the objects of all classes. When the one has reconciled its own, the other must not have touched it, and what it has created
	// later for itself shows that it had the opportunity.
	t.Run("each process has its classes", func(t *testing.T) {
		ofGarden, ofSeed, ofShoot := record("of-garden"), record("of-seed"), record("of-shoot")
		ofSeed.Spec.Class, ofShoot.Spec.Class, ofShoot.Namespace = new(extensionsv1alpha1.ExtensionClassSeed), nil, namespace
		objects := []*extensionsv1alpha1.DNSRecord{ofGarden, ofSeed, ofShoot}
		for _, o := range objects {
			o.Annotations = map[string]string{"gardener.cloud/operation": "reconcile"}
			create(t, c, o)
		}
		for _, o := range objects {
			done := env.Await(t, c, env.Named[*extensionsv1alpha1.DNSRecord](o.Namespace, o.Name), func(o *extensionsv1alpha1.DNSRecord) error {
				if last := o.Status.LastOperation; last == nil || last.Progress != 100 || o.Annotations["gardener.cloud/operation"] != "" {
					return errors.New("it is not reconciled")
				}
				return nil
			})
			want, other := runtimeNamespace, seedNamespace
			if o != ofGarden {
				want, other = seedNamespace, runtimeNamespace
			}
			if by := writers(done); !slices.Contains(by, want) || slices.Contains(by, other) {
				t.Errorf("DNSRecord %s was written by %v, want %s", o.Name, by, want)
			}
		}
		for _, o := range objects {
			if err := c.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			env.AwaitGone(t, c, o)
		}
	})
	t.Run("each process has its heartbeat and its leader", func(t *testing.T) {
		for _, namespace := range []string{runtimeNamespace, seedNamespace} {
			for _, name := range []string{extension.HeartbeatLease, "provider-local-leader-election"} {
				env.Await(t, c, env.Named[*coordinationv1.Lease](namespace, name), env.Exists)
			}
		}
	})
}

// install installs the chart in a namespace.
func install(t *testing.T, c client.Client, namespace string, gardener map[string]any) {
	t.Helper()
	archive, err := charts.Archive(charts.ProviderLocal)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := helm.Render(archive, helm.Release{
		Name: local.Name, Namespace: namespace, Kubernetes: version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"},
		Values: map[string]any{
			"image": "registry.example/gardener:v1", "gardener": gardener, "dns": map[string]any{"nodePort": 30053, "servedByGarden": []any{"local"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range rendered {
		// Each object is one of this release only, so it does not exist.
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatalf("create %s %s: %v", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
}

// as returns the configuration of the ServiceAccount of a namespace. Managed fields have the namespace as manager.
func as(config *rest.Config, namespace string) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = namespace
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + local.Name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	return config
}

// writers are the managers of an object's fields.
func writers(object client.Object) []string {
	var managers []string
	for _, entry := range object.GetManagedFields() {
		managers = append(managers, entry.Manager)
	}
	return managers
}

// TestRuntimeClusterOfGarden runs the process for the garden in a cluster that is no seed: it does not need the kinds of one.
func TestRuntimeClusterOfGarden(t *testing.T) {
	const runtimeNamespace = "runtime-extension-provider-local"
	e, c := cluster(t, crds.Extensions)
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: runtimeNamespace}})
	_, port := run(t, e, e.Config, runtimeNamespace, extensionsv1alpha1.ExtensionClassGarden)
	record := &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: runtimeNamespace, Name: "api"}, Spec: extensionsv1alpha1.DNSRecordSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local", Class: new(extensionsv1alpha1.ExtensionClassGarden)},
		SecretRef:   corev1.SecretReference{Namespace: "garden", Name: "dns"}, Name: "api.local.example", RecordType: "A", Values: []string{"10.0.0.1"},
	}}
	create(t, c, record)
	if err := resolve(t.Context(), port, "api", dns.RcodeSuccess); err != nil {
		t.Error(err)
	}
}
