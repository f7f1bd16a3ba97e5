package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/coredns"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/kubescheduler"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

// knownTasks are those that an operation does when it is asked to. All but the restarts are done by every operation anyway.
var knownTasks = []string{
	constants.ShootTaskDeployInfrastructure, constants.ShootTaskDeployDNSRecordInternal, constants.ShootTaskDeployDNSRecordExternal,
	constants.ShootTaskDeployDNSRecordIngress, constants.ShootTaskRestartControlPlanePods, constants.ShootTaskRestartCoreAddons,
	constants.ShootTaskUpdateGardenerNodeAgentSecretName,
}

// restartedAt is the annotation of pod templates by which pods are replaced, one after the other. The resource manager leaves it alone.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// orderedTasks are the tasks that the Shoot asks for besides the usual ones.
func (h *hosted) orderedTasks() []flow.Task {
	var tasks []flow.Task
	if h.asleep { // nothing runs
		return nil
	}
	asked := tasksOf(h.shoot)
	if slices.Contains(asked, constants.ShootTaskRestartControlPlanePods) {
		restart := task("restart-control-plane", "Restarting the control plane", h.restartControlPlane, "kube-controller-manager-ready")
		restart.AfterIfPresent = []string{"kube-scheduler-ready", "control-plane"}
		tasks = append(tasks, restart)
	}
	if slices.Contains(asked, constants.ShootTaskRestartCoreAddons) && !h.workerless() {
		tasks = append(tasks, task("restart-system-components", "Restarting system components", h.restartSystemComponents, "system-components", "kube-proxy"))
	}
	return tasks
}

// tasksOf are the tasks that a Shoot asks for.
func tasksOf(shoot *corev1beta1.Shoot) []string {
	return kube.SplitAnnotation(shoot.Annotations[constants.ShootTasks], constants.TasksSeparator)
}

// dropTasks takes off the tasks that an operation has done. Those that came while it ran are for the next one, as are those of others.
func (r *reconciler) dropTasks(ctx context.Context, shoot *corev1beta1.Shoot, done []string) error {
	if len(done) == 0 {
		return nil
	}
	return r.leave(ctx, shoot, constants.ShootTasks, func(now string) string {
		return strings.Join(remainingTasks(kube.SplitAnnotation(now, constants.TasksSeparator), done), constants.TasksSeparator)
	})
}

// remainingTasks are those that were not done, or are for somebody else.
func remainingTasks(asked, done []string) []string {
	return slices.DeleteFunc(slices.Clone(asked), func(name string) bool {
		return slices.Contains(done, name) && slices.Contains(knownTasks, name)
	})
}

// restartTime is the same in all runs until the operation is done, so that what was restarted is not restarted again.
func (h *hosted) restartTime() time.Time {
	if begin := h.shoot.Status.RetryCycleStartTime; begin != nil {
		return begin.Time
	}
	return h.Clock.Now()
}

// restartControlPlane replaces the pods of controllers, and those that extensions have labelled for it.
func (h *hosted) restartControlPlane(ctx context.Context) error {
	at := h.restartTime()
	names := []string{kubecontrollermanager.Name}
	if !h.workerless() {
		names = append(names, kubescheduler.Name)
	}
	for _, name := range names {
		if err := restart(ctx, h.SeedClient, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}, at); err != nil {
			return err
		}
	}
	pods := &corev1.PodList{}
	if err := h.SeedClient.List(ctx, pods, client.InNamespace(h.namespace), client.MatchingLabels{constants.PodMaintenanceRestart: "true"}); err != nil {
		return fmt.Errorf("list pods to restart: %w", err)
	}
	var errs []error
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.CreationTimestamp.Time.Before(at) && pod.DeletionTimestamp == nil {
			errs = append(errs, client.IgnoreNotFound(h.SeedClient.Delete(ctx, pod)))
		}
	}
	return errors.Join(errs...)
}

// restartSystemComponents replaces the pods of what every cluster needs on its nodes.
func (h *hosted) restartSystemComponents(ctx context.Context) error {
	shoot, err := h.connect(ctx)
	if err != nil {
		return err
	}
	at, system := h.restartTime(), client.InNamespace(metav1.NamespaceSystem)
	dns := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: coredns.Name}}
	if err := restart(ctx, shoot, dns, at); err != nil {
		return err
	}
	proxies := &appsv1.DaemonSetList{}
	if err := shoot.List(ctx, proxies, system); err != nil {
		return fmt.Errorf("list DaemonSets: %w", err)
	}
	for i := range proxies.Items {
		if proxy := &proxies.Items[i]; strings.HasPrefix(proxy.Name, "kube-proxy") {
			if err := restart(ctx, shoot, proxy, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// restart replaces the pods of a workload. One that is not there has none.
func restart(ctx context.Context, c client.Client, workload client.Object, at time.Time) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartedAt, at.UTC().Format(time.RFC3339))
	if err := c.Patch(ctx, workload, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("restart %T %q: %w", workload, workload.GetName(), err)
	}
	return nil
}
