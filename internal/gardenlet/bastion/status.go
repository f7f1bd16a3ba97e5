package bastion

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/kube"
)

// reportTimeout is plenty for a single request.
const reportTimeout = 5 * time.Second

// state is what a Bastion reports.
type state struct {
	condition corev1beta1.Condition
	// ingress is the address of the machine, once it has one.
	ingress *corev1.LoadBalancerIngress
}

// outcome returns the state of a Bastion from that in the seed, which could not be written if there is an error.
func outcome(inSeed *extensionsv1alpha1.Bastion, err error) state {
	s := state{condition: corev1beta1.Condition{Type: operationsv1alpha1.BastionReady, Status: corev1beta1.ConditionFalse, Reason: "FailedReconciling"}}
	if err != nil {
		s.condition.Message = err.Error()
		return s
	}
	s.ingress = inSeed.Status.Ingress
	switch verdict := extensionobject.Judge(inSeed); {
	case verdict.Error != nil:
		s.condition.Message, s.condition.Codes = verdict.Error.Description, verdict.Error.Codes
	case !verdict.Ready:
		s.condition.Status, s.condition.Reason, s.condition.Message = corev1beta1.ConditionProgressing, "Reconciling", verdict.Message
	case s.ingress == nil || s.ingress.IP == "" && s.ingress.Hostname == "":
		s.condition.Message = "The extension reports no address of the bastion."
	default:
		s.condition.Status, s.condition.Reason = corev1beta1.ConditionTrue, "SuccessfullyReconciled"
		s.condition.Message = "The bastion has been reconciled successfully."
	}
	return s
}

// deleting is the state of a Bastion that is being deleted.
func deleting() state {
	return state{condition: corev1beta1.Condition{
		Type: operationsv1alpha1.BastionReady, Status: corev1beta1.ConditionFalse, Reason: "DeletionInProgress", Message: "The bastion is being deleted.",
	}}
}

// report writes the state of a Bastion, if it differs.
func (r *reconciler) report(ctx context.Context, bastion *operationsv1alpha1.Bastion, s state) error {
	before := bastion.DeepCopy()
	bastion.Status.Conditions, _ = kube.SetCondition(bastion.Status.Conditions, s.condition, r.Clock.Now())
	if s.ingress != nil {
		bastion.Status.Ingress = s.ingress
	}
	bastion.Status.ObservedGeneration = new(bastion.Generation)
	if apiequality.Semantic.DeepEqual(before.Status, bastion.Status) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout) // also when the process stops
	defer cancel()
	if err := r.gardenCache.Status().Patch(ctx, bastion, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}
