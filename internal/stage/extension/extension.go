// Package extension is the stage for Extensions: what else is added to a cluster, before its kube-apiserver is deployed, when that is
// ready, or when there are nodes.
package extension

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
)

// kind is the kind of the resources in a ControllerRegistration.
const kind = "Extension"

// Extension is an Extension of a cluster, with what its registration says.
type Extension struct {
	// Type is that of the Extension, and its name.
	Type string
	// Config is its configuration in the Shoot. It may be nil.
	Config *runtime.RawExtension
	// Reconcile, Delete and Migrate are when it is reconciled, deleted, and released if the control plane moves to another seed.
	Reconcile, Delete, Migrate corev1beta1.ControllerResourceLifecycleStrategy
	// Timeout is for how long the extension may work.
	Timeout time.Duration
	// Reconciled is whether it exists and its extension has reconciled it.
	Reconciled bool
}

// Object returns the resource of the Extension in a namespace, with its name only.
func (e Extension) Object(namespace string) *extensionsv1alpha1.Extension {
	return &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: e.Type}}
}

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// Desired are the Extensions that the cluster has, Stale those that exist and are not desired.
	Desired, Stale []Extension
	// Hibernates is whether the cluster is being hibernated.
	Hibernates bool
	// Hibernated is whether there is no kube-apiserver to wait for.
	Hibernated bool
}

// ID returns the ID of the task that reconciles an Extension of a type.
func ID(typ string) string { return "extension-" + typ }

// IDsBeforeWorker returns the IDs of the tasks that node configuration, the Network and system components come after: webhooks of these extensions add
// to them what their Extension reports.
func (in Inputs) IDsBeforeWorker() []string {
	var ids []string
	for _, e := range in.Desired {
		if e.Reconcile != corev1beta1.AfterWorker && !in.hibernatesLast(e) {
			ids = append(ids, ID(e.Type))
		}
	}
	return ids
}

// IDsBeforeAPIServer returns the IDs of the tasks that the kube-apiserver comes after.
func (in Inputs) IDsBeforeAPIServer() []string {
	var ids []string
	for _, e := range in.Desired {
		if e.Reconcile == corev1beta1.BeforeKubeAPIServer && !in.hibernatesLast(e) {
			ids = append(ids, ID(e.Type))
		}
	}
	return ids
}

// Tasks returns the tasks of the stage. In a hibernated cluster, Extensions do not wait for a kube-apiserver, and the deletion of stale
// ones is not waited for: what they have created in the cluster can be deleted only when it runs. In one that is being hibernated, the tasks of some
// Extensions are those of HibernationTasks.
func Tasks(in Inputs) []flow.Task {
	tasks := make([]flow.Task, 0, len(in.Desired)+len(in.Stale))
	for _, e := range in.Desired {
		if in.hibernatesLast(e) {
			continue
		}
		task := in.reconcile(e)
		if !in.Hibernated && e.Reconcile != corev1beta1.BeforeKubeAPIServer {
			task.After = append(task.After, "kube-apiserver-ready")
			task = task.IfPresent("tokens") // that of the kubeconfig with which extensions connect
		}
		if !in.Hibernated && e.Reconcile == corev1beta1.AfterWorker {
			task = task.IfPresent("worker")
		}
		tasks = append(tasks, task)
	}
	for _, e := range in.Stale {
		tasks = append(tasks, in.stale(e))
	}
	return tasks
}

// HibernationTasks returns the tasks of the Extensions that are hibernated when the kube-apiserver is stopped, as it may need them. They are the last ones,
// after the given tasks: if one of these fails, the kube-apiserver is started once more.
func HibernationTasks(in Inputs, after ...string) []flow.Task {
	var tasks []flow.Task
	for _, e := range in.Desired {
		if in.hibernatesLast(e) {
			task := in.reconcile(e)
			task.After = append(task.After, after...)
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// hibernatesLast is whether an Extension is reconciled before the kube-apiserver otherwise, and after it now. One that is new comes before it, as always: the
// kube-apiserver of a shoot that is created hibernated runs for a moment, too.
func (in Inputs) hibernatesLast(e Extension) bool {
	return in.Hibernates && e.Reconcile == corev1beta1.BeforeKubeAPIServer && e.Reconciled
}

// reconcile returns the task that reconciles an Extension.
func (in Inputs) reconcile(e Extension) flow.Task {
	return flow.Await(e.timeout(), ID(e.Type), "Waiting until Extension "+e.Type+" is ready", func(ctx context.Context) error {
		return stage.Extend(ctx, in.Run, e.Object(in.Run.Namespace), func(obj *extensionsv1alpha1.Extension) {
			obj.Spec.DefaultSpec = stage.DefaultSpec(obj.Spec.Class, e.Type, e.Config)
		})
	}, "namespace", "cluster").IfPresent(stage.BeforeExtensions...).IfPresent("infrastructure") // which completes the networks in the Cluster resource
}

func (in Inputs) stale(e Extension) flow.Task {
	if !in.Hibernated {
		return Deletion(in.Run, e, "cluster", "kube-apiserver-ready")
	}
	return flow.Do(ID(e.Type)+"-gone", "Deleting Extension "+e.Type, func(ctx context.Context) error {
		return extensionobject.Delete(ctx, in.Run.ExtensionValues(), e.Object(in.Run.Namespace))
	}, "cluster")
}

// Deletion returns the task that deletes an Extension and waits until it is gone.
func Deletion(run *stage.Run, e Extension, after ...string) flow.Task {
	return flow.Await(e.timeout(), ID(e.Type)+"-gone", "Deleting Extension "+e.Type, func(ctx context.Context) error {
		return run.DeleteExtension(ctx, e.Object(run.Namespace))
	}, after...)
}

func (e Extension) timeout() time.Duration { return cmp.Or(e.Timeout, stage.ExtensionTimeout) }

// registered returns an Extension with what its registration says.
func registered(resource corev1beta1.ControllerResource) Extension {
	e := Extension{
		Type: resource.Type, Reconcile: corev1beta1.AfterKubeAPIServer, Delete: corev1beta1.BeforeKubeAPIServer, Migrate: corev1beta1.BeforeKubeAPIServer,
	}
	if lifecycle := resource.Lifecycle; lifecycle != nil {
		e.Reconcile, e.Delete = cmp.Or(ptr.Deref(lifecycle.Reconcile, ""), e.Reconcile), cmp.Or(ptr.Deref(lifecycle.Delete, ""), e.Delete)
		e.Migrate = cmp.Or(ptr.Deref(lifecycle.Migrate, ""), e.Migrate)
	}
	if resource.ReconcileTimeout != nil {
		e.Timeout = resource.ReconcileTimeout.Duration
	}
	return e
}

// Desired returns the Extensions that a Shoot has: those that it asks for, and those that are enabled by default and that it does not
// disable.
func Desired(shoot *corev1beta1.Shoot, registrations []corev1beta1.ControllerRegistration) []Extension {
	return desired(shoot.Spec.Extensions, corev1beta1.ClusterTypeShoot, registrations, func(resource corev1beta1.ControllerResource) bool {
		return !shoot.Workerless() || ptr.Deref(resource.WorkerlessSupported, false)
	})
}

// DesiredForSeed returns the Extensions that a Seed has for itself, likewise.
func DesiredForSeed(seed *corev1beta1.Seed, registrations []corev1beta1.ControllerRegistration) []Extension {
	return desired(seed.Spec.Extensions, corev1beta1.ClusterTypeSeed, registrations, func(resource corev1beta1.ControllerResource) bool {
		return slices.Contains(resource.ClusterCompatibility, corev1beta1.ClusterTypeSeed)
	})
}

// DesiredForGarden returns the Extensions that the garden has for itself, likewise, of those in its spec.
func DesiredForGarden(specified []corev1beta1.Extension, registrations []corev1beta1.ControllerRegistration) []Extension {
	return desired(specified, corev1beta1.ClusterTypeGarden, registrations, func(resource corev1beta1.ControllerResource) bool {
		return slices.Contains(resource.ClusterCompatibility, corev1beta1.ClusterTypeGarden)
	})
}

// desired returns the Extensions of a cluster of a type, from those in its spec and those that are enabled for the type. Others are not
// supported.
func desired(
	specified []corev1beta1.Extension, cluster corev1beta1.ClusterType, registrations []corev1beta1.ControllerRegistration,
	supported func(corev1beta1.ControllerResource) bool,
) []Extension {
	byType := map[string]Extension{}
	for _, registration := range registrations {
		for _, resource := range registration.Spec.Resources {
			if resource.Kind != kind || !ptr.Deref(resource.Primary, true) {
				continue
			}
			e := registered(resource)
			if i := slices.IndexFunc(specified, func(e corev1beta1.Extension) bool { return e.Type == resource.Type }); i >= 0 {
				if ptr.Deref(specified[i].Disabled, false) {
					continue
				}
				e.Config = specified[i].ProviderConfig
			} else if !slices.Contains(resource.AutoEnable, cluster) {
				continue
			}
			if !supported(resource) {
				continue
			}
			byType[resource.Type] = e
		}
	}
	extensions := make([]Extension, 0, len(byType))
	for _, e := range byType {
		extensions = append(extensions, e)
	}
	slices.SortFunc(extensions, func(a, b Extension) int { return strings.Compare(a.Type, b.Type) })
	return extensions
}

// Stale returns the Extensions that exist and are not desired. They are deleted as their registration says, if they still have one.
func Stale(existing []extensionsv1alpha1.Extension, desired []Extension, registrations []corev1beta1.ControllerRegistration) []Extension {
	var stale []Extension
	for _, obj := range existing {
		if slices.ContainsFunc(desired, func(e Extension) bool { return e.Type == obj.Name }) {
			continue
		}
		e := registered(corev1beta1.ControllerResource{Kind: kind, Type: obj.Name})
		for _, registration := range registrations {
			for _, resource := range registration.Spec.Resources {
				if resource.Kind == kind && resource.Type == e.Type && ptr.Deref(resource.Primary, true) {
					e = registered(resource)
				}
			}
		}
		stale = append(stale, e)
	}
	return stale
}
