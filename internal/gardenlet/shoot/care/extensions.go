package care

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/pkg/extension"
)

// extensionCondition is one condition in the status of one extension resource.
type extensionCondition struct {
	kind, typ, name string
	condition       corev1beta1.Condition
	// heartbeat is when the extension controller last renewed its heartbeat Lease. It is nil if none is expected.
	heartbeat *time.Time
	// installation is the name of the ControllerInstallation that heartbeat is from.
	installation string
}

// observeExtensions reads the conditions of the extension resources of a shoot, and the heartbeats of their controllers.
func (r *reconciler) observeExtensions(ctx context.Context, shoot *corev1beta1.Shoot, o *observed) error {
	for _, list := range []client.ObjectList{
		&extensionsv1alpha1.ControlPlaneList{}, &extensionsv1alpha1.ExtensionList{}, &extensionsv1alpha1.InfrastructureList{},
		&extensionsv1alpha1.NetworkList{}, &extensionsv1alpha1.WorkerList{}, &extensionsv1alpha1.ContainerRuntimeList{},
	} {
		if err := r.seedCache.List(ctx, list, client.InNamespace(shoot.Status.TechnicalID)); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
		o.addExtensionConditions(list)
	}
	if len(o.extensionConditions) == 0 || !r.Config.StaleExtensionHealthChecks.Enabled {
		return nil
	}
	installations, registrations := &corev1beta1.ControllerInstallationList{}, &corev1beta1.ControllerRegistrationList{}
	for _, list := range []client.ObjectList{installations, registrations} {
		if err := r.gardenCache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	leases := &coordinationv1.LeaseList{}
	if err := r.SeedAPI.List(ctx, leases, fromCache(), client.MatchingFields{metav1.ObjectNameField: extension.HeartbeatLease}); err != nil {
		return fmt.Errorf("list heartbeats of extensions: %w", err)
	}
	for i := range o.extensionConditions {
		c := &o.extensionConditions[i]
		if ci := extensionobject.Responsible(c.kind, c.typ, r.SeedName, installations.Items, registrations.Items); ci != nil {
			c.heartbeat, c.installation = heartbeat(leases.Items, extensionobject.NamespacePrefix+ci.Name), ci.Name
		}
	}
	return nil
}

func (o *observed) addExtensionConditions(list client.ObjectList) {
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if e, ok := item.(extensionsv1alpha1.Object); ok {
			kind := strings.TrimPrefix(fmt.Sprintf("%T", e), "*v1alpha1.") // objects from a cache have no kind
			for _, condition := range e.GetExtensionStatus().GetConditions() {
				o.extensionConditions = append(o.extensionConditions, extensionCondition{
					kind: kind, typ: e.GetExtensionSpec().GetExtensionType(), name: e.GetName(), condition: condition,
				})
			}
		}
		return nil
	})
}

// heartbeat is when the extension controller in a namespace last renewed its heartbeat Lease. It is the zero time without one.
func heartbeat(leases []coordinationv1.Lease, namespace string) *time.Time {
	at := time.Time{}
	for i := range leases {
		if leases[i].Namespace == namespace && leases[i].Spec.RenewTime != nil {
			at = leases[i].Spec.RenewTime.Time
		}
	}
	return &at
}

// finding returns what a condition of an extension resource adds to the condition of the Shoot, or nil if it is True.
func (c *extensionCondition) finding(staleAfter time.Duration, now time.Time) *finding {
	from := fmt.Sprintf("%s %q of type %q", c.kind, c.name, c.typ)
	if c.heartbeat != nil && staleAfter > 0 && now.Sub(*c.heartbeat) > staleAfter {
		return &finding{
			status: corev1beta1.ConditionUnknown,
			message: fmt.Sprintf("%s: the health report is outdated, as the extension controller of ControllerInstallation %q does not renew its heartbeat Lease: "+
				"see its pods in namespace %q of the seed", from, c.installation, extensionobject.NamespacePrefix+c.installation),
		}
	}
	if c.condition.Status == corev1beta1.ConditionTrue {
		return nil
	}
	return &finding{status: c.condition.Status, message: from + ": " + c.condition.Message, codes: c.condition.Codes}
}
