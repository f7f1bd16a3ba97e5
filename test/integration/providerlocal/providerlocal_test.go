// Package providerlocal runs provider-local against real API servers, and the suite of the extension contract against it.
package providerlocal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/provider/local"
	"gardener.cloud/gardener/pkg/extension/contract"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

const (
	namespace = "shoot--dev--crazy"
	// machinesNamespace is where its machines are.
	machinesNamespace = "infra-" + namespace
	address           = "127.0.0.1"
)

// cluster starts API servers with the kinds that provider-local uses, and returns a client of the administrator.
func cluster(t *testing.T, definitions ...func() ([]*apiextensionsv1.CustomResourceDefinition, error)) (*env.Env, client.WithWatch) {
	t.Helper()
	logf.SetLogger(logr.Discard())
	e := env.Start(t, env.Lenient())
	for _, add := range []process.AddToScheme{extensionsv1alpha1.AddToScheme, apiextensionsv1.AddToScheme, machinev1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(e.Scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, definitions := range definitions {
		all, err := definitions()
		if err != nil {
			t.Fatal(err)
		}
		if err := crds.Deploy(t.Context(), c, "test", all...); err != nil {
			t.Fatal(err)
		}
	}
	return e, c
}

// run runs provider-local. It returns the directory of backups and the port of its DNS server. No classes are those of a seed.
func run(t *testing.T, e *env.Env, as *rest.Config, namespace string, classes ...extensionsv1alpha1.ExtensionClass) (directory string, port int) {
	t.Helper()
	directory, port = t.TempDir(), ports.Free(t, 1)[0]
	config := &providerlocalconfigv1alpha1.ProviderLocalConfiguration{Namespace: namespace, ExtensionClasses: classes}
	config.DNS = providerlocalconfigv1alpha1.DNSConfiguration{BindAddress: address, Port: port, Zones: []string{"local.example"}}
	config.Backup.Directory = directory
	config.Images = providerlocalconfigv1alpha1.ImagesConfiguration{
		Gardener: "registry.example/gardener:v1", Flannel: "registry.example/flannel:v1", Crun: "registry.example/crun:v1",
	}
	webhooks := ports.Free(t, 1)[0]
	config.Server.Webhooks = &providerlocalconfigv1alpha1.WebhookServer{
		Server: providerlocalconfigv1alpha1.Server{BindAddress: address, Port: webhooks}, URL: fmt.Sprintf("%s:%d", address, webhooks),
	}
	providerlocalconfigv1alpha1.SetDefaults(config)
	options := manager.Options{
		Scheme: e.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: crconfig.Controller{SkipNameValidation: new(true)}, // a test may run more than once
		// As of the process, so that it has the permissions that it needs, and no more.
		LeaderElection: true, LeaderElectionID: config.LeaderElection.ResourceName, LeaderElectionNamespace: config.LeaderElection.ResourceNamespace,
	}
	local.Component().Options(config, &options)
	mgr, err := manager.New(as, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	// The clusters of kubeconfigs are on this computer, too.
	anyHost := func(string) string { return "" }
	if err := local.WireWith(ctx, &process.Process{Manager: mgr, Metrics: prometheus.NewRegistry()}, config, anyHost); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return directory, port
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProviderLocal(t *testing.T) {
	e, c := cluster(t, crds.Extensions, crds.Machine, crds.Resources, crds.VerticalPodAutoscaler)
	create(t, c,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "extension"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "extension", Name: "credentials"}},
		&extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: extensionsv1alpha1.ClusterSpec{
			CloudProfile: raw(t, builder.CloudProfile("local")), Seed: new(raw(t, builder.Seed("local"))), Shoot: raw(t, builder.Shoot("crazy")),
		}},
	)
	// As the ServiceAccount of the chart, so that what its role lacks shows.
	install(t, c, "extension", map[string]any{"seed": map[string]any{"name": "local"}})
	directory, port := run(t, e, as(e.Config, "extension"), "extension")
	finalizeNamespaces(t, c)
	number := 0
	meta := func() metav1.ObjectMeta {
		number++
		return metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("n%d", number)}
	}
	ofType := func(name string) extensionsv1alpha1.DefaultSpec { return extensionsv1alpha1.DefaultSpec{Type: name} }
	secret := corev1.SecretReference{Namespace: "extension", Name: "credentials"}

	t.Run("DNSRecord", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				m := meta()
				return &extensionsv1alpha1.DNSRecord{ObjectMeta: m, Spec: extensionsv1alpha1.DNSRecordSpec{
					DefaultSpec: ofType("local"), SecretRef: secret, Name: m.Name + ".local.example", RecordType: "A", Values: []string{"10.0.0.1"},
				}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.DNSRecord).Spec.Type = "aws-route53" },
			Fulfilled: func(t *testing.T, o extensionsv1alpha1.Object) {
				if err := resolve(t.Context(), port, o.GetName(), dns.RcodeSuccess); err != nil {
					t.Error(err)
				}
			},
			Gone: func(t *testing.T, o extensionsv1alpha1.Object) {
				if err := resolve(t.Context(), port, o.GetName(), dns.RcodeNameError); err != nil {
					t.Error(err)
				}
			},
		})
	})
	t.Run("Infrastructure", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.Infrastructure{ObjectMeta: meta(), Spec: extensionsv1alpha1.InfrastructureSpec{DefaultSpec: ofType("local"), Region: "local", SecretRef: secret}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.Infrastructure).Spec.Type = "aws" },
			Fulfilled: func(t *testing.T, _ extensionsv1alpha1.Object) {
				made := &corev1.Namespace{}
				if err := c.Get(t.Context(), client.ObjectKey{Name: machinesNamespace}, made); err != nil || made.DeletionTimestamp != nil {
					t.Errorf("the namespace of the machines is missing: %v", err)
				}
				policy := &networkingv1.NetworkPolicy{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: machinesNamespace, Name: "machines"}, policy); err != nil || len(policy.Spec.PolicyTypes) != 2 {
					t.Errorf("machines are not isolated: %v, %v", policy.Spec, err)
				}
			},
			Gone: func(t *testing.T, _ extensionsv1alpha1.Object) {
				if err := c.Get(t.Context(), client.ObjectKey{Name: machinesNamespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
					t.Errorf("the namespace of the machines still exists: %v", err)
				}
			},
		})
	})
	t.Run("ControlPlane", func(t *testing.T) {
		create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machinesNamespace}})
		t.Cleanup(func() {
			_ = c.Delete(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machinesNamespace}})
		})
		suite := contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.ControlPlane{ObjectMeta: meta(), Spec: extensionsv1alpha1.ControlPlaneSpec{DefaultSpec: ofType("local"), Region: "local", SecretRef: secret}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.ControlPlane).Spec.Type = "aws" },
			Fulfilled: func(t *testing.T, _ extensionsv1alpha1.Object) {
				key := client.ObjectKey{Namespace: machinesNamespace, Name: "machine-controller-manager-provider-local"}
				if err := errors.Join(c.Get(t.Context(), key, &rbacv1.Role{}), c.Get(t.Context(), key, &rbacv1.RoleBinding{})); err != nil {
					t.Error(err)
				}
			},
		}
		contract.Run(t, suite)
		// It reads whether the kube-apiserver of a hibernated shoot is stopped.
		cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		setShoot := func(hibernated bool) {
			env.Edit(t, c, cluster, func(cluster *extensionsv1alpha1.Cluster) {
				cluster.Spec.Shoot = raw(t, builder.Shoot("crazy", func(shoot *corev1beta1.Shoot) {
					shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: &hibernated}
				}))
			})
		}
		setShoot(true)
		defer setShoot(false)
		contract.Run(t, suite)
	})
	t.Run("machine-controller-manager", func(t *testing.T) { testWebhook(t, c) })
	t.Run("Network", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.Network{ObjectMeta: meta(), Spec: extensionsv1alpha1.NetworkSpec{
					DefaultSpec: ofType("flannel"), PodCIDR: "10.3.0.0/16", ServiceCIDR: "10.4.0.0/16",
				}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.Network).Spec.Type = "calico" },
			Fulfilled: func(t *testing.T, _ extensionsv1alpha1.Object) {
				key := client.ObjectKey{Namespace: namespace, Name: "extension-networking-flannel"}
				if err := c.Get(t.Context(), key, &resourcesv1alpha1.ManagedResource{}); err != nil {
					t.Error(err)
				}
			},
		})
	})
	t.Run("Extension", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.Extension{ObjectMeta: meta(), Spec: extensionsv1alpha1.ExtensionSpec{DefaultSpec: ofType("local-ext-shoot")}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.Extension).Spec.Type = "shoot-dns-service" },
			Restored: func(t *testing.T, o extensionsv1alpha1.Object) {
				if got := string(o.GetExtensionStatus().GetState().Raw); got != `{"operations":["reconcile","restore"]}` {
					t.Errorf("state is %s", got)
				}
			},
		})
	})
	t.Run("health of the Network", func(t *testing.T) {
		contract.RunHealth(t, contract.HealthSuite{
			Client: c, Condition: corev1beta1.ShootSystemComponentsHealthy,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.Network{ObjectMeta: meta(), Spec: extensionsv1alpha1.NetworkSpec{
					DefaultSpec: ofType("flannel"), PodCIDR: "10.3.0.0/16", ServiceCIDR: "10.4.0.0/16",
				}}
			},
			Heal: func(t *testing.T, _ extensionsv1alpha1.Object) {
				setHealth(t, c, "extension-networking-flannel", corev1beta1.ConditionTrue)
			},
			Break: func(t *testing.T, _ extensionsv1alpha1.Object) {
				setHealth(t, c, "extension-networking-flannel", corev1beta1.ConditionFalse)
			},
		})
	})
	t.Run("ContainerRuntime", func(t *testing.T) { testContainerRuntime(t, c) })
	t.Run("OperatingSystemConfig", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: meta(), Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
					DefaultSpec: ofType("local"), Purpose: extensionsv1alpha1.OperatingSystemConfigPurposeProvision,
					Units: []extensionsv1alpha1.Unit{{Name: "x.service", Content: new("[Service]\nExecStart=/bin/true\n")}},
				}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.OperatingSystemConfig).Spec.Type = "ubuntu" },
			Fulfilled: func(t *testing.T, o extensionsv1alpha1.Object) {
				ref := o.(*extensionsv1alpha1.OperatingSystemConfig).Status.CloudConfig.SecretRef
				script := &corev1.Secret{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, script); err != nil || len(script.Data["cloud_config"]) == 0 {
					t.Errorf("user data %v: %v", ref, err)
				}
			},
		})
	})
	t.Run("BackupBucket", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				m := meta()
				m.Namespace = ""
				return &extensionsv1alpha1.BackupBucket{ObjectMeta: m, Spec: extensionsv1alpha1.BackupBucketSpec{DefaultSpec: ofType("local"), Region: "local", SecretRef: secret}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.BackupBucket).Spec.Type = "aws" },
			Fulfilled: func(t *testing.T, o extensionsv1alpha1.Object) {
				if _, err := os.Stat(filepath.Join(directory, o.GetName())); err != nil || o.(*extensionsv1alpha1.BackupBucket).Status.GeneratedSecretRef == nil {
					t.Errorf("the bucket is not there: %v", err)
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
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				m := meta()
				m.Namespace, m.Name = "", namespace+"--"+m.Name
				return &extensionsv1alpha1.BackupEntry{ObjectMeta: m, Spec: extensionsv1alpha1.BackupEntrySpec{
					DefaultSpec: ofType("local"), Region: "local", BucketName: "bucket", SecretRef: secret,
				}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.BackupEntry).Spec.Type = "aws" },
			Fulfilled: func(t *testing.T, _ extensionsv1alpha1.Object) {
				access := &corev1.Secret{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "etcd-backup"}, access); err != nil || string(access.Data["bucketName"]) != "bucket" {
					t.Errorf("access: %v", err)
				}
			},
		})
	})
}

func testContainerRuntime(t *testing.T, c client.WithWatch) {
	const ofShoot, ofPool = "extension-runtime-crun", "extension-runtime-crun-installation-"
	number := 0
	suite := contract.Suite{
		Client: c,
		New: func() extensionsv1alpha1.Object {
			number++
			pool := fmt.Sprintf("p%d", number)
			return &extensionsv1alpha1.ContainerRuntime{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crun-" + pool},
				Spec: extensionsv1alpha1.ContainerRuntimeSpec{
					DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "crun"}, BinaryPath: "/var/bin/containerruntimes",
					WorkerPool: extensionsv1alpha1.ContainerRuntimeWorkerPool{
						Name: pool, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"worker.gardener.cloud/pool": pool}},
					},
				},
			}
		},
		Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.ContainerRuntime).Spec.Type = "gvisor" },
	}
	nameOf := func(o extensionsv1alpha1.Object) string {
		return ofPool + o.(*extensionsv1alpha1.ContainerRuntime).Spec.WorkerPool.Name
	}
	exists := func(t *testing.T, name string, want bool) {
		t.Helper()
		err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &resourcesv1alpha1.ManagedResource{})
		if client.IgnoreNotFound(err) != nil || (err == nil) != want {
			t.Errorf("ManagedResource %q, want it to exist: %t, got %v", name, want, err)
		}
	}
	suite.Fulfilled = func(t *testing.T, o extensionsv1alpha1.Object) {
		exists(t, ofShoot, true)
		exists(t, nameOf(o), true)
	}
	suite.Gone = func(t *testing.T, o extensionsv1alpha1.Object) { exists(t, nameOf(o), false) }
	contract.RunContainerRuntime(t, suite)
	exists(t, ofShoot, false) // deleted with the last pool
	contract.RunHealth(t, contract.HealthSuite{
		Client: c, New: suite.New, Condition: corev1beta1.ShootSystemComponentsHealthy,
		Heal: func(t *testing.T, o extensionsv1alpha1.Object) {
			setHealth(t, c, ofShoot, corev1beta1.ConditionTrue)
			setHealth(t, c, nameOf(o), corev1beta1.ConditionTrue)
		},
		Break: func(t *testing.T, o extensionsv1alpha1.Object) {
			setHealth(t, c, nameOf(o), corev1beta1.ConditionFalse)
		},
	})
}

// setHealth reports the health of a ManagedResource as gardener-resource-manager does.
func setHealth(t *testing.T, c client.WithWatch, name string, healthy corev1beta1.ConditionStatus) {
	t.Helper()
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	env.EditStatus(t, c, mr, func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Status.ObservedGeneration, mr.Status.Conditions = mr.Generation, nil
		for typ, is := range map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
			resourcesv1alpha1.ResourcesApplied: corev1beta1.ConditionTrue, resourcesv1alpha1.ResourcesHealthy: healthy,
			resourcesv1alpha1.ResourcesProgressing: corev1beta1.ConditionFalse,
		} {
			mr.Status.Conditions = append(mr.Status.Conditions, corev1beta1.Condition{
				Type: typ, Status: is, Reason: "Test", Message: "test", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
			})
		}
	})
}

// finalizeNamespaces does what the namespace controller does for empty namespaces.
func finalizeNamespaces(t *testing.T, c client.WithWatch) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	changes, err := c.Watch(ctx, &corev1.NamespaceList{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { changes.Stop(); cancel() })
	go func() {
		for change := range changes.ResultChan() {
			if ns, ok := change.Object.(*corev1.Namespace); ok && ns.DeletionTimestamp != nil && len(ns.Spec.Finalizers) > 0 {
				ns.Spec.Finalizers = nil
				_ = c.SubResource("finalize").Update(ctx, ns) // what is not finalized shows
			}
		}
	}()
}

func raw(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: content}
}

// kubeconfigOf returns the administrator's kubeconfig.
func kubeconfigOf(t *testing.T, e *env.Env) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := e.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestWorker plays two seeds whose machines are in a cluster of their own: here, all three are one.
func TestWorker(t *testing.T) {
	const namespace = "shoot--dev--worker"
	e, c := cluster(t, crds.Extensions, crds.Machine, crds.Resources, crds.VerticalPodAutoscaler)
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "extension"}})
	install(t, c, "extension", map[string]any{"seed": map[string]any{"name": "local"}})
	profile := builder.CloudProfile("local")
	profile.Spec.ProviderConfig = new(raw(t, &localv1alpha1.CloudProfileConfig{MachineImages: []localv1alpha1.MachineImages{{
		Name: "local", Versions: []localv1alpha1.MachineImageVersion{{Version: "1.0.0", Image: "registry.example/machine:v1"}},
	}}}))
	profile.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("2"), Memory: resource.MustParse("2Gi")}}
	labels := map[string]string{"app": "machine-controller-manager"}
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "machine-controller-manager"}}
	manager.Spec.Replicas, manager.Spec.Selector, manager.Spec.Template.Labels = new(int32(0)), &metav1.LabelSelector{MatchLabels: labels}, labels
	manager.Spec.Template.Spec.Containers = []corev1.Container{{Name: "machine-controller-manager", Image: "registry.example/gardener:v1"}}
	create(t, c,
		&extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: extensionsv1alpha1.ClusterSpec{
			CloudProfile: raw(t, profile), Seed: new(raw(t, builder.Seed("local"))), Shoot: raw(t, builder.Shoot("worker")),
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloudprovider"}, Data: map[string][]byte{"kubeconfig": kubeconfigOf(t, e)}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "userdata"}, Data: map[string][]byte{"cloud_config": []byte("#!/bin/bash")}},
		manager,
	)
	run(t, e, as(e.Config, "extension"), "extension")
	number := 0
	t.Run("Infrastructure in the cluster of a kubeconfig", func(t *testing.T) {
		finalizeNamespaces(t, c)
		exists := func(t *testing.T, _ extensionsv1alpha1.Object) {
			if err := c.Get(t.Context(), client.ObjectKey{Name: "infra-" + namespace}, &corev1.Namespace{}); err != nil {
				t.Error(err)
			}
		}
		contract.Run(t, contract.Suite{
			Client: c, Fulfilled: exists, Kept: exists,
			New: func() extensionsv1alpha1.Object {
				number++
				return &extensionsv1alpha1.Infrastructure{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("i%d", number)},
					Spec: extensionsv1alpha1.InfrastructureSpec{
						DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, Region: "local", SecretRef: corev1.SecretReference{Namespace: namespace, Name: "cloudprovider"},
					},
				}
			},
			Restored: func(t *testing.T, o extensionsv1alpha1.Object) {
				if networking := o.(*extensionsv1alpha1.Infrastructure).Status.Networking; networking == nil || len(networking.Nodes) != 1 {
					t.Errorf("the network of nodes is %v", networking)
				}
			},
		})
	})
	contract.RunWorker(t, contract.Suite{
		Client: c,
		New: func() extensionsv1alpha1.Object {
			number++
			return &extensionsv1alpha1.Worker{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("w%d", number)},
				Spec: extensionsv1alpha1.WorkerSpec{
					DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, Region: "local", SecretRef: corev1.SecretReference{Namespace: namespace, Name: "cloudprovider"},
					Pools: []extensionsv1alpha1.WorkerPool{{
						Name: "pool", MachineType: "small", Minimum: 1, Maximum: 3, MaxSurge: intstr.FromInt32(1), MaxUnavailable: intstr.FromInt32(0),
						MachineImage:      &extensionsv1alpha1.MachineImage{Name: "local", Version: "1.0.0"},
						UserDataSecretRef: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "userdata"}, Key: "cloud_config"},
					}},
				},
			}
		},
	})
}

// testWebhook applies the machine-controller-manager as the gardenlet does.
func testWebhook(t *testing.T, c client.WithWatch) {
	find := func(t *testing.T, in string, kind func(client.Object) bool) client.Object {
		t.Helper()
		objects, err := machinecontrollermanager.Objects(machinecontrollermanager.Values{
			Namespace: in, Image: "registry.example/gardener:v2", Replicas: 1, GenericKubeconfig: "generic-token-kubeconfig",
		})
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, workload.ControlPlaneAutoscalers(objects, func(string) workload.Autoscaling { return workload.Autoscaling{} })...)
		for _, object := range objects {
			if kind(object) {
				return object
			}
		}
		t.Fatal("the gardenlet deploys no such object")
		return nil
	}
	list := func(t *testing.T, u *unstructured.Unstructured, path ...string) []any {
		t.Helper()
		found, _, err := unstructured.NestedSlice(u.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	t.Run("Deployment", func(t *testing.T) {
		contract.RunWebhook(t, contract.WebhookSuite{
			Client: c, Extension: "provider-local", Type: "local", Namespaces: "shoot--dev--deployment",
			New: func(in string) client.Object {
				credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "cloudprovider"}}
				if err := client.IgnoreAlreadyExists(c.Create(t.Context(), credentials)); err != nil {
					t.Fatal(err)
				}
				return find(t, in, func(o client.Object) bool { _, ok := o.(*appsv1.Deployment); return ok })
			},
			Changed: func(t *testing.T, u *unstructured.Unstructured) {
				deployment := &appsv1.Deployment{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, deployment); err != nil {
					t.Fatal(err)
				}
				spec := deployment.Spec.Template.Spec
				if len(spec.Containers) != 2 || spec.Containers[0].Name != "machine-controller-manager" || spec.Containers[1].Name != "machine-controller-manager-provider-local" {
					t.Fatalf("containers are %v", spec.Containers)
				}
				driver := spec.Containers[1]
				if driver.Image != "registry.example/gardener:v1" || !slices.Contains(driver.Args, "--namespace="+u.GetNamespace()) || !slices.Contains(driver.Args, "--port=10259") ||
					len(driver.VolumeMounts) != 1 || driver.VolumeMounts[0] != spec.Containers[0].VolumeMounts[0] || driver.Ports[0].Name != "providermetrics" {
					t.Errorf("container is %+v", driver)
				}
			},
		})
	})
	t.Run("VerticalPodAutoscaler", func(t *testing.T) {
		contract.RunWebhook(t, contract.WebhookSuite{
			Client: c, Extension: "provider-local", Type: "local", Namespaces: "shoot--dev--vpa",
			New: func(in string) client.Object {
				return find(t, in, func(o client.Object) bool { return o.GetName() == "machine-controller-manager-vpa" })
			},
			Changed: func(t *testing.T, u *unstructured.Unstructured) {
				var names []string
				for _, policy := range list(t, u, "spec", "resourcePolicy", "containerPolicies") {
					names = append(names, fmt.Sprint(policy.(map[string]any)["containerName"])) //nolint:forcetypeassert // policies are objects
				}
				if want := []string{"machine-controller-manager", "machine-controller-manager-provider-local", "*"}; !slices.Equal(names, want) {
					t.Errorf("policies are for %v, want %v", names, want)
				}
			},
		})
	})
}

// resolve asks for the address of a name.
func resolve(ctx context.Context, port int, name string, code int) error {
	// The server is updated by an informer, which may be later than the controller.
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		question := new(dns.Msg).SetQuestion(name+".local.example.", dns.TypeA)
		response, _, err := new(dns.Client).ExchangeContext(ctx, question, fmt.Sprintf("%s:%d", address, port))
		switch {
		case err != nil:
			last = err
		case response.Rcode != code || (code == dns.RcodeSuccess) != (len(response.Answer) == 1):
			last = errors.New("the answer is " + response.String())
		default:
			return true, nil
		}
		return false, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}
