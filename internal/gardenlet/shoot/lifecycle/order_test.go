package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/coredns"
	"gardener.cloud/gardener/internal/component/kubeproxy"
	"gardener.cloud/gardener/internal/component/metricsserver"
	"gardener.cloud/gardener/internal/component/nodeproblemdetector"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/flow"
)

// Extensions and their webhooks read the Cluster resource and Secrets at once when a resource is written, and what others report in their resources.
// The flow of a new shoot writes each resource when all of that exists. Source: nodes-and-autoscaling.md section 5, gep-1-extensibility.txt.
func TestExtensionsFindWhatTheyRead(t *testing.T) {
	logf.SetLogger(logr.Discard())
	l, o := newLandscape(t), complete(workers)
	o.Shoot.Spec.Networking, o.Shoot.Status.Networking = &corev1beta1.Networking{Type: new("local")}, nil
	o.Shoot.Spec.Resources = []corev1beta1.NamedResourceReference{{Name: "x"}}
	o.Shoot.Spec.Resources[0].ResourceRef.APIVersion, o.Shoot.Spec.Resources[0].ResourceRef.Kind, o.Shoot.Spec.Resources[0].ResourceRef.Name = "v1", "Secret", "x"
	o.CloudProvider = &usercredential.Credential{Kind: usercredential.Secret}
	infrastructure := &extensionsv1alpha1.Infrastructure{}
	infrastructure.Namespace, infrastructure.Name = o.Namespace, o.Shoot.Name
	infrastructure.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{
		Nodes: []string{"10.1.0.0/16"}, Pods: []string{"10.3.0.0/16"}, Services: []string{"10.4.0.0/16"},
	}
	referenced := &corev1.Secret{}
	referenced.Namespace, referenced.Name = o.Shoot.Namespace, "x"
	if err := errors.Join(l.garden.Create(t.Context(), o.Shoot.DeepCopy()), l.garden.Create(t.Context(), referenced), l.seed.Create(t.Context(), infrastructure)); err != nil {
		t.Fatal(err)
	}

	// lacks returns what a resource was written without.
	lacks := func(ctx context.Context, object client.Object) []string {
		var missing []string
		has := func(what client.Object, name string) bool {
			return l.seed.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, what) == nil
		}
		require := func(what client.Object, name string) {
			if !has(what, name) {
				missing = append(missing, fmt.Sprintf("%T %s", what, name))
			}
		}
		cluster, err := extension.ReadCluster(ctx, l.seed, o.Namespace)
		if err != nil {
			return []string{err.Error()}
		}
		if name := cluster.Annotations[extensionsv1alpha1.AnnotationGenericKubeconfigSecretName]; name == "" {
			missing = append(missing, "name of the kubeconfig")
		} else {
			require(&corev1.Secret{}, name)
		}
		require(&corev1.Secret{}, "cloudprovider")
		require(&corev1.Secret{}, "ref-x")
		if _, ok := object.(*extensionsv1alpha1.Infrastructure); ok {
			return missing
		}
		if networking := cluster.Shoot.Spec.Networking; networking.Nodes == nil || networking.Pods == nil || networking.Services == nil {
			missing = append(missing, "networks")
		}
		serves := has(&appsv1.Deployment{}, "kube-apiserver")
		token := &corev1.Secret{}
		connects := has(token, "gardener") && len(token.Data["kubeconfig"]) > 0
		switch object.(type) {
		case *extensionsv1alpha1.Extension:
			if object.GetName() == "early" {
				if serves {
					missing = append(missing, "a kube-apiserver that is not deployed yet")
				}
				return missing
			}
			if object.GetName() == "late" {
				require(&extensionsv1alpha1.Worker{}, o.Shoot.Name)
			}
		case *extensionsv1alpha1.OperatingSystemConfig, *extensionsv1alpha1.Network, *resourcesv1alpha1.ManagedResource: // which webhooks change
			require(&extensionsv1alpha1.ControlPlane{}, o.Shoot.Name)
			require(&extensionsv1alpha1.Extension{}, "early")
			require(&extensionsv1alpha1.Extension{}, "usual")
			if _, ok := object.(*extensionsv1alpha1.OperatingSystemConfig); ok && has(&extensionsv1alpha1.Extension{}, "late") {
				missing = append(missing, "an Extension that is not there before the Worker")
			}
		}
		if !serves || !connects {
			missing = append(missing, "a kube-apiserver with a kubeconfig for it")
		}
		return missing
	}

	systemComponents := []string{
		coredns.ManagedResourceName, metricsserver.ManagedResourceName, nodeproblemdetector.ManagedResourceName, kubeproxy.ManagedResourceName,
	}
	var lock sync.Mutex
	var written []string
	got := map[string][]string{}
	observe := func(ctx context.Context, object client.Object) {
		switch object.(type) {
		case *resourcesv1alpha1.ManagedResource:
			if !slices.Contains(systemComponents, object.GetName()) {
				return
			}
		case *extensionsv1alpha1.Infrastructure, *extensionsv1alpha1.ControlPlane, *extensionsv1alpha1.Network, *extensionsv1alpha1.OperatingSystemConfig,
			*extensionsv1alpha1.Worker, *extensionsv1alpha1.Extension, *extensionsv1alpha1.ContainerRuntime:
		default:
			return
		}
		name := fmt.Sprintf("%T %s", object, object.GetName())
		lock.Lock()
		defer lock.Unlock()
		if !slices.Contains(written, name) {
			written = append(written, name)
			if missing := lacks(ctx, object); len(missing) > 0 {
				got[name] = missing
			}
		}
	}
	l.observeWrites(observe)
	l.run(t, (*reconciler).reconcileFlow, o, -1)
	if diff := cmp.Diff(map[string][]string{}, got); diff != "" {
		t.Errorf("resources were written without (-want +got):\n%s", diff)
	}
	// Infrastructure, ControlPlane, Network, two OperatingSystemConfigs, Worker, ContainerRuntime, three Extensions, and the system components
	if len(written) != 10+len(systemComponents) {
		t.Errorf("%d resources were written: %q", len(written), written)
	}
}

// Webhooks of extensions read the Cluster resource, the name of the generic kubeconfig in it, and copies of Secrets, when they change parts of the control plane. Tasks
// that write these come after all of it: a webhook would refuse them otherwise, or have pods mount a kubeconfig that there is not.
func TestWebhooksFindWhatTheyRead(t *testing.T) {
	logf.SetLogger(logr.Discard())
	cluster, all := []string{"Cluster"}, []string{"Cluster", "name of the kubeconfig", "cloudprovider", "ref-x"}
	for task, want := range map[string][]string{
		"cloudprovider": cluster, "etcd-main": cluster, "etcd-events": cluster, "kube-apiserver": all, "vpn-seed-server": all,
		"kube-controller-manager": all, "kube-scheduler": all, "machine-controller-manager": all,
	} {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			l, o := newLandscape(t), complete(workers)
			o.Extensions = nil // tasks before the kube-apiserver would come after the same
			o.CloudProvider = &usercredential.Credential{Kind: usercredential.Secret}
			o.Shoot.Spec.Resources = []corev1beta1.NamedResourceReference{{Name: "x"}}
			o.Shoot.Spec.Resources[0].ResourceRef.APIVersion, o.Shoot.Spec.Resources[0].ResourceRef.Kind, o.Shoot.Spec.Resources[0].ResourceRef.Name = "v1", "Secret", "x"
			referenced := &corev1.Secret{}
			referenced.Namespace, referenced.Name = o.Shoot.Namespace, "x"
			if err := errors.Join(l.garden.Create(t.Context(), o.Shoot.DeepCopy()), l.garden.Create(t.Context(), referenced)); err != nil {
				t.Fatal(err)
			}
			f, err := l.reconcileFlow(o)
			if err != nil {
				t.Fatal(err)
			}
			if f, err = f.UpTo(task); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Run(t.Context(), flow.Options{}); err != nil {
				t.Fatal(err)
			}
			exists := func(what string) bool {
				switch found := (&extensionsv1alpha1.Cluster{}); what {
				case "Cluster", "name of the kubeconfig":
					if l.seed.Get(t.Context(), client.ObjectKey{Name: o.Namespace}, found) != nil {
						return false
					}
					name := found.Annotations[extensionsv1alpha1.AnnotationGenericKubeconfigSecretName]
					return what == "Cluster" || l.seed.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: name}, &corev1.Secret{}) == nil
				}
				return l.seed.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: what}, &corev1.Secret{}) == nil
			}
			for _, what := range want {
				if !exists(what) {
					t.Errorf("%s does not come after %s", task, what)
				}
			}
		})
	}
}

// observeWrites calls a function before an object is written in the seed. It gets the name only of a ManagedResource, which is applied.
func (l *landscape) observeWrites(observe func(context.Context, client.Object)) {
	l.SeedAPI = interceptor.NewClient(l.seed, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if object, ok := config.(client.Object); ok && object.GetObjectKind().GroupVersionKind().Kind == "ManagedResource" {
				mr := &resourcesv1alpha1.ManagedResource{}
				mr.Name = object.GetName()
				observe(ctx, mr)
			}
			return c.Apply(ctx, config, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			observe(ctx, object)
			return c.Create(ctx, object, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			observe(ctx, object)
			return c.Patch(ctx, object, patch, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			observe(ctx, object)
			return c.Update(ctx, object, opts...)
		},
	})
}

// A shoot that is hibernated keeps what its kube-apiserver may need until that is stopped, and then stops what connects to it.
func TestHibernationFollowsTheKubeAPIServer(t *testing.T) {
	logf.SetLogger(logr.Discard())
	l, o := newLandscape(t), complete(workers)
	o.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)}
	var lock sync.Mutex
	got := map[string][]string{}
	l.observeWrites(func(ctx context.Context, object client.Object) {
		switch object.(type) {
		case *extensionsv1alpha1.ControlPlane, *extensionsv1alpha1.Extension:
		default:
			return
		}
		state, deployment := "runs", &appsv1.Deployment{}
		if err := l.seed.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: "kube-apiserver"}, deployment); err != nil {
			state = err.Error()
		} else if *deployment.Spec.Replicas == 0 {
			state = "is stopped"
		}
		lock.Lock()
		defer lock.Unlock()
		if states := got[object.GetName()]; !slices.Contains(states, state) {
			got[object.GetName()] = append(states, state)
		}
	})
	l.run(t, (*reconciler).reconcileFlow, o, -1)
	if diff := cmp.Diff(map[string][]string{
		o.Shoot.Name: {"runs", "is stopped"}, "early": {"is stopped"}, "usual": {"runs"}, "late": {"runs"},
	}, got); diff != "" {
		t.Errorf("the kube-apiserver when resources were written (-want +got):\n%s", diff)
	}
}
