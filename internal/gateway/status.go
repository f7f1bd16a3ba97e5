package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// condition returns an outcome as a condition.
func (o outcome) condition(typ string, generation int64) metav1.Condition {
	status := metav1.ConditionFalse
	if o.ok {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: typ, Status: status, Reason: o.reason, Message: o.message, ObservedGeneration: generation}
}

// classStatus returns the status of the class of the gateway.
func classStatus(class *gatewayv1.GatewayClass) gatewayv1.GatewayClassStatus {
	status := *class.Status.DeepCopy()
	meta.SetStatusCondition(&status.Conditions,
		valid(gatewayv1.GatewayClassReasonAccepted).condition(string(gatewayv1.GatewayClassConditionStatusAccepted), class.Generation))
	return status
}

// gatewayStatus returns the status of the gateway.
func gatewayStatus(f facts, v verdict) gatewayv1.GatewayStatus {
	gateway := f.gateway
	status := *gateway.Status.DeepCopy()
	status.Addresses = addresses(f.front)
	accepted, programmed := valid(gatewayv1.GatewayReasonAccepted), valid(gatewayv1.GatewayReasonProgrammed)
	if slices.ContainsFunc(v.listeners, func(l listenerVerdict) bool { return !l.accepted.ok }) {
		// It is accepted if one listener is.
		accepted.reason = string(gatewayv1.GatewayReasonListenersNotValid)
		accepted.ok = slices.ContainsFunc(v.listeners, func(l listenerVerdict) bool { return l.accepted.ok })
		accepted.message = "not all listeners are valid"
	}
	switch {
	case !accepted.ok:
		programmed = invalid(gatewayv1.GatewayReasonInvalid, "no listener is valid")
	case len(status.Addresses) == 0:
		programmed = invalid(gatewayv1.GatewayReasonAddressNotAssigned, "the load balancer has no address yet")
	}
	meta.SetStatusCondition(&status.Conditions, accepted.condition(string(gatewayv1.GatewayConditionAccepted), gateway.Generation))
	meta.SetStatusCondition(&status.Conditions, programmed.condition(string(gatewayv1.GatewayConditionProgrammed), gateway.Generation))
	before := status.Listeners
	status.Listeners = nil
	for _, l := range v.listeners {
		result := gatewayv1.ListenerStatus{Name: l.name, AttachedRoutes: l.attached, SupportedKinds: []gatewayv1.RouteGroupKind{
			{Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: tlsRoute},
		}}
		if i := slices.IndexFunc(before, func(b gatewayv1.ListenerStatus) bool { return b.Name == l.name }); i >= 0 {
			result.Conditions = before[i].Conditions
		}
		programmed := valid(gatewayv1.ListenerReasonProgrammed)
		if !l.accepted.ok || !l.refs.ok {
			programmed = invalid(gatewayv1.ListenerReasonInvalid, "the listener is not valid")
		}
		for typ, o := range map[gatewayv1.ListenerConditionType]outcome{
			gatewayv1.ListenerConditionAccepted: l.accepted, gatewayv1.ListenerConditionResolvedRefs: l.refs,
			gatewayv1.ListenerConditionProgrammed: programmed,
		} {
			meta.SetStatusCondition(&result.Conditions, o.condition(string(typ), gateway.Generation))
		}
		slices.SortFunc(result.Conditions, byType)
		status.Listeners = append(status.Listeners, result)
	}
	return status
}

// addresses are those of the load balancer.
func addresses(front *corev1.Service) []gatewayv1.GatewayStatusAddress {
	if front == nil {
		return nil
	}
	var out []gatewayv1.GatewayStatusAddress
	for _, ingress := range front.Status.LoadBalancer.Ingress {
		if ingress.IP != "" {
			out = append(out, gatewayv1.GatewayStatusAddress{Type: new(gatewayv1.IPAddressType), Value: ingress.IP})
		} else if ingress.Hostname != "" {
			out = append(out, gatewayv1.GatewayStatusAddress{Type: new(gatewayv1.HostnameAddressType), Value: ingress.Hostname})
		}
	}
	return out
}

// routeStatus returns the status of a route. The parts of other gateways are kept.
func routeStatus(f facts, route *gatewayv1.TLSRoute, parents []parentVerdict) gatewayv1.TLSRouteStatus {
	status := *route.Status.DeepCopy()
	own := func(p gatewayv1.RouteParentStatus) bool {
		return p.ControllerName == ControllerName && refersTo(p.ParentRef, route.Namespace, f.gateway)
	}
	before := slices.Clone(status.Parents)
	status.Parents = slices.DeleteFunc(status.Parents, own)
	for _, parent := range parents {
		result := gatewayv1.RouteParentStatus{ParentRef: parent.ref, ControllerName: ControllerName}
		if i := slices.IndexFunc(before, func(b gatewayv1.RouteParentStatus) bool {
			return own(b) && apiequality.Semantic.DeepEqual(b.ParentRef, parent.ref)
		}); i >= 0 {
			result.Conditions = slices.Clone(before[i].Conditions)
		}
		meta.SetStatusCondition(&result.Conditions, parent.accepted.condition(string(gatewayv1.RouteConditionAccepted), route.Generation))
		meta.SetStatusCondition(&result.Conditions, parent.refs.condition(string(gatewayv1.RouteConditionResolvedRefs), route.Generation))
		if parent.partial == "" {
			meta.RemoveStatusCondition(&result.Conditions, string(gatewayv1.RouteConditionPartiallyInvalid))
		} else {
			meta.SetStatusCondition(&result.Conditions, outcome{ok: true, reason: reasonHostnameConflict, message: parent.partial}.
				condition(string(gatewayv1.RouteConditionPartiallyInvalid), route.Generation))
		}
		slices.SortFunc(result.Conditions, byType)
		status.Parents = append(status.Parents, result)
	}
	return status
}

func byType(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) }

// patchStatus writes the status of an object if the change of a copy differs.
func patchStatus[T client.Object](ctx context.Context, c client.Client, object T, change func(T)) error {
	changed := object.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has its original's type
	change(changed)
	if apiequality.Semantic.DeepEqual(object, changed) {
		return nil
	}
	// A patch replaces whole lists, so the object must not have changed since it was read.
	if err := c.Status().Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch status of %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
