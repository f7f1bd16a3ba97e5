package foreign

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	operationAnnotation = "gardener.cloud/operation"
	finalizer           = "extensions.gardener.cloud/" + Name
)

// reconciler does what is requested for one kind: it removes the request, works, and reports.
type reconciler struct {
	client client.Client
	kind   string
	act    func(context.Context, client.Client, *unstructured.Unstructured) error
}

// Reconcile reconciles one object.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	object := kind(r.kind)
	if err := r.client.Get(ctx, req.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if typ, _, _ := unstructured.NestedString(object.Object, "spec", "type"); typ != Type {
		return reconcile.Result{}, nil
	}
	before := object.DeepCopy()
	if object.GetDeletionTimestamp() != nil {
		controllerutil.RemoveFinalizer(object, finalizer)
		return reconcile.Result{}, client.IgnoreNotFound(r.client.Patch(ctx, object, client.MergeFrom(before)))
	}
	annotations := maps.Clone(object.GetAnnotations())
	_, requested := annotations[operationAnnotation]
	state, _, _ := unstructured.NestedString(object.Object, "status", "lastOperation", "state")
	if !requested && state == "Succeeded" {
		return reconcile.Result{}, nil
	}
	delete(annotations, operationAnnotation)
	object.SetAnnotations(annotations)
	controllerutil.AddFinalizer(object, finalizer)
	if err := r.client.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.report(ctx, object, "Processing", "is being reconciled"); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.act(ctx, r.client, object); err != nil {
		_ = unstructured.SetNestedMap(object.Object, map[string]any{"description": err.Error()}, "status", "lastError")
		_ = r.report(ctx, object, "Error", err.Error())
		return reconcile.Result{}, err
	}
	unstructured.RemoveNestedField(object.Object, "status", "lastError")
	return reconcile.Result{}, r.report(ctx, object, "Succeeded", "has been reconciled")
}

// report writes the last operation, and what the function of the kind has put into the status.
func (r *reconciler) report(ctx context.Context, object *unstructured.Unstructured, state, description string) error {
	last := map[string]any{
		"type": "Reconcile", "state": state, "progress": int64(100), "description": description, "lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
	}
	if err := unstructured.SetNestedMap(object.Object, last, "status", "lastOperation"); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(object.Object, object.GetGeneration(), "status", "observedGeneration"); err != nil {
		return err
	}
	if err := r.client.Status().Update(ctx, object); err != nil {
		return fmt.Errorf("report %s: %w", state, err)
	}
	return nil
}
