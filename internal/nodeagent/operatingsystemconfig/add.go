// Package operatingsystemconfig applies the operating system config of a worker pool to the machine that the agent runs on.
//
// It reads the Secret of the pool and the agent's Node in the shoot, and writes files, systemd units and the configuration of containerd
// on the machine, and labels and annotations of the Node. What it applied last is in a file on the machine, so that it can remove what
// another configuration has no longer. Source: concepts.txt, Gardener Node Agent, "Operating System Config Controller".
package operatingsystemconfig

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/imagefile"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
	"gardener.cloud/gardener/internal/nodeagent/systemd"
)

const (
	// firstRetry and lastRetry are the shortest and longest delay before a pass that failed is retried: a new machine should not wait for
	// long, and registries and API servers may be down for a while.
	firstRetry, lastRetry = 500 * time.Millisecond, time.Minute
)

// Systemd is the part of systemd that the controller needs.
type Systemd interface {
	Reload(ctx context.Context) error
	Enable(ctx context.Context, unit string) error
	Disable(ctx context.Context, unit string) error
	Restart(ctx context.Context, unit string) error
	RestartWithoutWaiting(ctx context.Context, unit string) error
	Stop(ctx context.Context, unit string) error
	State(ctx context.Context, unit string) (systemd.State, error)
}

// Values configure the controller.
type Values struct {
	// Client reads the Node and the Secret from a cache, and writes the Node.
	Client client.Client
	// Recorder records events about the Node.
	Recorder events.EventRecorder
	// Clock measures delays.
	Clock clock.Clock
	// Root and Systemd are those of the machine.
	Root    rootfs.Dir
	Systemd Systemd
	// Hostname is the name of the machine and its Node.
	Hostname string
	// SecretName is the name of the Secret with the configuration.
	SecretName string
	// KubernetesVersion is that of the kubelet in the configuration.
	KubernetesVersion string
	// SyncPeriod is how often the machine is compared with the configuration.
	SyncPeriod time.Duration
	// PrepareKubelet writes what a kubelet needs to start for the first time, and TidyKubelet removes it after the first start.
	PrepareKubelet, TidyKubelet func() error
	// Extract writes files of an image to the machine. It calls replace before it replaces the first file, and stops if that fails.
	Extract func(ctx context.Context, root rootfs.Dir, image string, files []imagefile.File, replace func() error) error
	// RenewCertificate requests a new client certificate for the agent, RebootstrapKubelet makes the kubelet do so when it starts, and SyncTokens writes
	// tokens to files. They are called in updates in place, when credentials were rotated.
	RenewCertificate   func(ctx context.Context) error
	RebootstrapKubelet func() error
	SyncTokens         func(ctx context.Context) error
	// KubeletHealthy returns why the kubelet is not healthy, and DeletePods deletes all pods of a Node, at the end of updates in place.
	KubeletHealthy func(ctx context.Context, node *corev1.Node) error
	DeletePods     func(ctx context.Context, node string) error
	// Run runs a command on the machine, and returns its output.
	Run func(ctx context.Context, command string, args ...string) (string, error)
	// Probe returns an error if a mirror of a registry is not ready.
	Probe func(ctx context.Context, root rootfs.Dir, registry string, mirror extensionsv1alpha1.RegistryHost) error
}

// Add adds the controller to a manager whose cache has the Secret and the Node of the agent, and no others.
func Add(mgr manager.Manager, v Values) error {
	c, err := controller.New("operatingsystemconfig", mgr, controller.Options{
		Reconciler: &reconciler{Values: v}, MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	})
	if err != nil {
		return err
	}
	secret := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: v.SecretName}}
	enqueue := handler.EnqueueRequestsFromMapFunc(mapTo(secret))
	err = c.Watch(source.Kind[client.Object](mgr.GetCache(), &corev1.Secret{}, enqueue, predicate.Funcs{
		// Without the Secret, the machine stays as it is.
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}))
	if err != nil {
		return err
	}
	return c.Watch(source.Kind[client.Object](mgr.GetCache(), &corev1.Node{}, enqueue, predicate.Funcs{
		// A new Node needs its annotations. Later, only changes of them by other clients matter.
		UpdateFunc: func(e event.UpdateEvent) bool {
			for _, key := range []string{
				nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig, constants.NodeAgentReconciliationDelay,
			} {
				if e.ObjectOld.GetAnnotations()[key] != e.ObjectNew.GetAnnotations()[key] {
					return true
				}
			}
			before, isNode := e.ObjectOld.(*corev1.Node)
			after, same := e.ObjectNew.(*corev1.Node)
			return isNode && same && updateReason(before) != updateReason(after) // it may have become ready for its update
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}))
}
