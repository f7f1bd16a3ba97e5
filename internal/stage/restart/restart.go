// Package restart is the stage that restarts pods when the owner of a shoot asks for it.
package restart

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/coredns"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
)

// restartedAt is the annotation of pod templates by which pods are replaced, one after the other. gardener-resource-manager keeps it.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// kubeProxyPrefix begins the names of the DaemonSets of kube-proxy.
const kubeProxyPrefix = "kube-proxy"

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// ControlPlane are the Deployments in the seed that are restarted, together with the pods that extensions have labelled for it. Empty
	// means that no restart of the control plane is asked for.
	ControlPlane []string
	// SystemComponents is whether the system components are restarted.
	SystemComponents bool
	// At returns the time of the restart. It is the same in all runs until the operation is done, so that nothing is restarted twice.
	At func() time.Time
}

// Tasks returns the tasks of the stage.
func Tasks(in Inputs) []flow.Task {
	var tasks []flow.Task
	if len(in.ControlPlane) > 0 {
		tasks = append(tasks, flow.Do("restart-control-plane", "Restarting pods of the control plane", in.restartControlPlane, "kube-controller-manager-ready").
			IfPresent("kube-scheduler-ready", "control-plane"))
	}
	if in.SystemComponents {
		tasks = append(tasks, flow.Do("restart-system-components", "Restarting CoreDNS and kube-proxy", in.restartSystemComponents,
			"system-components").IfPresent("kube-proxy"))
	}
	return tasks
}

func (in Inputs) restartControlPlane(ctx context.Context) error {
	at, c := in.At(), in.Run.SeedAPI
	for _, name := range in.ControlPlane {
		if err := Workload(ctx, c, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: in.Run.Namespace, Name: name}}, at); err != nil {
			return err
		}
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(in.Run.Namespace), client.MatchingLabels{constants.PodMaintenanceRestart: "true"}); err != nil {
		return fmt.Errorf("list pods to restart: %w", err)
	}
	var errs []error
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.CreationTimestamp.Time.Before(at) && pod.DeletionTimestamp == nil {
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, pod)))
		}
	}
	return errors.Join(errs...)
}

func (in Inputs) restartSystemComponents(ctx context.Context) error {
	shootClient, err := in.Run.Target.Client(ctx)
	if err != nil {
		return err
	}
	at := in.At()
	dns := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: coredns.Name}}
	if err := Workload(ctx, shootClient, dns, at); err != nil {
		return err
	}
	proxies := &appsv1.DaemonSetList{}
	if err := shootClient.List(ctx, proxies, client.InNamespace(metav1.NamespaceSystem)); err != nil {
		return fmt.Errorf("list DaemonSets: %w", err)
	}
	for i := range proxies.Items {
		if proxy := &proxies.Items[i]; strings.HasPrefix(proxy.Name, kubeProxyPrefix) {
			if err := Workload(ctx, shootClient, proxy, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// Workload replaces the pods of a workload. One that does not exist has none.
func Workload(ctx context.Context, c client.Client, workload client.Object, at time.Time) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartedAt, at.UTC().Format(time.RFC3339))
	if err := c.Patch(ctx, workload, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("restart %T %q: %w", workload, workload.GetName(), err)
	}
	return nil
}
