// Package networkpolicy writes NetworkPolicies for Services: pods with a label for a Service and a port may connect to it.
//
// It reads Services, namespaces and Ingresses of one cluster, and writes NetworkPolicies there.
// Source: concepts.txt, Gardener Resource Manager, "NetworkPolicy Controller".
package networkpolicy

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/internal/kube"
)

// passTimeout limits a reconciliation. A Service may need a policy in each of hundreds of namespaces.
const passTimeout = 2 * time.Minute

// reconciler writes the policies of a Service.
type reconciler struct {
	client            client.Client
	namespaces        []labels.Selector
	ingressController *IngressController
	owner             string
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	in, err := r.observe(ctx, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	desired, problem := policies(in) // valid parts are applied, even if annotations are invalid
	if err := r.write(ctx, request, desired); err != nil {
		return kube.Result(err)
	}
	if problem != nil {
		return reconcile.Result{}, reconcile.TerminalError(problem) // only an edit of the Service helps
	}
	return reconcile.Result{}, nil
}

// observe reads what the policies of a Service depend on.
func (r *reconciler) observe(ctx context.Context, request reconcile.Request) (input, error) {
	in := input{ingressController: r.ingressController}
	service := &corev1.Service{}
	if err := r.client.Get(ctx, request.NamespacedName, service); err != nil {
		return in, client.IgnoreNotFound(err)
	}
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: request.Namespace}, namespace); err != nil {
		return in, client.IgnoreNotFound(err)
	}
	if service.DeletionTimestamp != nil || namespace.DeletionTimestamp != nil || !matches(r.namespaces, namespace.Labels) {
		return in, nil // no policies are desired
	}
	in.service = service
	all := &corev1.NamespaceList{}
	if err := r.client.List(ctx, all); err != nil {
		return in, err
	}
	in.namespaces = all.Items
	if r.ingressController != nil {
		ingresses := &networkingv1.IngressList{}
		if err := r.client.List(ctx, ingresses, client.InNamespace(request.Namespace), client.MatchingFields{indexBackend: request.String()}); err != nil {
			return in, err
		}
		in.ingresses = ingresses.Items
	}
	return in, nil
}

// write applies the desired policies of a Service, and deletes all others of it.
func (r *reconciler) write(ctx context.Context, request reconcile.Request, desired []*networkingv1.NetworkPolicy) error {
	list := &networkingv1.NetworkPolicyList{}
	if err := r.client.List(ctx, list, client.MatchingFields{indexService: request.String()}); err != nil {
		return err
	}
	present := map[client.ObjectKey]*networkingv1.NetworkPolicy{}
	for i := range list.Items {
		present[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	var errs []error
	for _, policy := range desired {
		key := client.ObjectKeyFromObject(policy)
		if have := present[key]; have == nil || differs(have, policy) {
			errs = append(errs, kube.Apply(ctx, r.client, r.owner, policy))
		}
		delete(present, key)
	}
	for key, policy := range present {
		if err := r.client.Delete(ctx, policy); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete NetworkPolicy %s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// differs says whether a policy is not as desired. Additional labels and annotations do not matter.
func differs(have, want *networkingv1.NetworkPolicy) bool {
	return !apiequality.Semantic.DeepEqual(have.Spec, want.Spec) || !contains(have.Labels, want.Labels) || !contains(have.Annotations, want.Annotations)
}

func contains(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}
