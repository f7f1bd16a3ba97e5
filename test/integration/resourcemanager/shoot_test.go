// Package resourcemanager tests gardener-resource-manager as it is deployed for a shoot: with two clusters, and only its own permissions.
package resourcemanager

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	component "gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/shootsystem"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/resourcemanager"
	"gardener.cloud/gardener/pkg/managedresource"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

const (
	namespace = "shoot--a--b"
	owner     = "test"
)

func TestShoot(t *testing.T) {
	e := env.Start(t)
	seed, shoot := connect(t, e.Config), connect(t, e.AddCluster(t))
	values := component.Values{
		Namespace: namespace, Image: "registry.example/gardener", Replicas: 1,
		Config: component.ForShoot(component.ShootOptions{Namespace: namespace, Workerless: true, ClusterIdentity: "seed"}),
		Shoot:  &component.Shoot{GenericKubeconfig: "generic"},
	}
	prepareSeed(t, seed)
	config := deploy(t, seed, values)
	config.SourceClientConnection.Kubeconfig = kubeconfigOfAccount(t, seed)
	config.TargetClientConnection.Kubeconfig = env.KubeconfigFile(t, shoot.config)
	config.Server.HealthProbes, config.Server.Metrics = freeServer(t), freeServer(t)
	// On a busy machine, leader election would otherwise time out and end the process.
	config.LeaderElection.LeaseDuration.Duration, config.LeaderElection.RenewDeadline.Duration = 2*time.Minute, time.Minute
	run(t, config)

	// The objects of every shoot, and those that the resource manager itself needs there.
	apply(t, seed, pack(t, seed, shootsystem.ManagedResourceName, shootsystem.Objects(shootsystem.Values{Workerless: true, ClusterIdentity: "me"})...)...)
	apply(t, seed, pack(t, seed, "shoot-core-gardener-resource-manager", component.TargetObjects(values)...)...)
	for _, name := range []string{shootsystem.ManagedResourceName, "shoot-core-gardener-resource-manager"} {
		awaitApplied(t, seed, name)
	}
	identity := &corev1.ConfigMap{}
	if err := shoot.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "cluster-identity"}, identity); err != nil {
		t.Fatal(err)
	}
	if got := identity.Annotations[resourcesv1alpha1.OriginAnnotation]; got != "seed:"+namespace+"/"+shootsystem.ManagedResourceName {
		t.Errorf("origin is %q", got)
	}

	// A component of the control plane gets a token, which is valid in the shoot.
	token := awaitToken(t, seed, shootaccess.SecretName(component.Name))
	access := rest.AnonymousClientConfig(shoot.config)
	access.BearerToken = token
	own := connect(t, access)
	env.AwaitRequest(t, func(ctx context.Context) error {
		return own.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &corev1.Namespace{})
	})

	// When the ManagedResources are deleted, its own permissions are deleted last.
	for _, name := range []string{"shoot-core-gardener-resource-manager", shootsystem.ManagedResourceName} {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := seed.Delete(t.Context(), mr); err != nil {
			t.Fatal(err)
		}
	}
	env.AwaitList(t, seed, env.None[*resourcesv1alpha1.ManagedResource], client.InNamespace(namespace))
	if err := own.Get(t.Context(), client.ObjectKey{Name: "gardener.cloud:target:resource-manager"}, &rbacv1.ClusterRole{}); err != nil {
		t.Errorf("its permissions were deleted too early: %v", err)
	}
}

// cluster is one of the two, with a client of an administrator.
type cluster struct {
	client.WithWatch
	config *rest.Config
}

func connect(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{c, config}
}

func prepareSeed(t *testing.T, seed *cluster) {
	t.Helper()
	definitions, err := crds.Resources()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), seed, owner, definitions...); err != nil {
		t.Fatal(err)
	}
	apply(t, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	env.AwaitServed[*resourcesv1alpha1.ManagedResource](t, seed)
}

func apply(t *testing.T, c *cluster, objects ...client.Object) {
	t.Helper()
	if err := kube.Apply(t.Context(), c, owner, objects...); err != nil {
		t.Fatal(err)
	}
}

// deploy applies the rendered resource manager, and returns its configuration.
func deploy(t *testing.T, seed *cluster, values component.Values) *resourcemanagerconfigv1alpha1.ResourceManagerConfiguration {
	t.Helper()
	objects, err := component.Objects(values)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, seed, objects...)
	config := &resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{}
	for _, object := range objects {
		if configMap, ok := object.(*corev1.ConfigMap); ok {
			if err := yaml.UnmarshalStrict([]byte(configMap.Data["config.yaml"]), config); err != nil {
				t.Fatal(err)
			}
		}
	}
	return config
}

// kubeconfigOfAccount writes a kubeconfig of the service account of the pods.
func kubeconfigOfAccount(t *testing.T, seed *cluster) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.Name}}
	if err := seed.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return env.KubeconfigFile(t, env.WithToken(seed.config, request.Status.Token))
}

func freeServer(t *testing.T) *resourcemanagerconfigv1alpha1.Server {
	t.Helper()
	return &resourcemanagerconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: ports.Free(t, 1)[0]}
}

// run runs the process with a configuration until the test ends.
func run(t *testing.T, config *resourcemanagerconfigv1alpha1.ResourceManagerConfiguration) {
	t.Helper()
	data, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	manager := resourcemanager.Component()
	read, err := manager.Config.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	// Its command would set the logger of this process, which serves the garden API too.
	go func() { done <- manager.Run(ctx, read, process.NewLogger(t.Output(), "info", "json")) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func pack(t *testing.T, seed *cluster, name string, objects ...client.Object) []client.Object {
	t.Helper()
	packed, err := managedresource.Objects(seed.Scheme(), managedresource.Values{Namespace: namespace, Name: name}, objects...)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func awaitApplied(t *testing.T, seed *cluster, name string) {
	t.Helper()
	env.Await(t, seed, env.Named[*resourcesv1alpha1.ManagedResource](namespace, name), func(mr *resourcesv1alpha1.ManagedResource) error {
		if condition := kube.Condition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied); condition == nil || condition.Status != corev1beta1.ConditionTrue {
			return errors.New("the resources are not applied")
		}
		return nil
	})
}

func awaitToken(t *testing.T, seed *cluster, name string) string {
	t.Helper()
	secret := env.Await(t, seed, env.Named[*corev1.Secret](namespace, name), func(secret *corev1.Secret) error {
		if len(secret.Data[resourcesv1alpha1.DataKeyToken]) == 0 {
			return errors.New("there is no token")
		}
		return nil
	})
	return string(secret.Data[resourcesv1alpha1.DataKeyToken])
}
