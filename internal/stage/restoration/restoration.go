// Package restoration is the stage that gives a control plane on another seed what was saved of it: its credentials, and the states of its extensions.
package restoration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/shoot/state"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
)

// Credentials returns the task that creates the Secrets that were saved. It comes before credentials are generated: those that exist are kept.
func Credentials(run *stage.Run, saved *corev1beta1.ShootStateSpec) flow.Task {
	return flow.Do("restored-credentials", "Restoring credentials from the ShootState", func(ctx context.Context) error {
		secrets, err := state.Secrets(saved, run.Namespace)
		if err != nil {
			return err
		}
		for _, secret := range secrets {
			if !state.Restorable(corev1.SchemeGroupVersion.WithKind("Secret"), secret.Name) {
				return fmt.Errorf("Secret %q of the ShootState: those of ManagedResources are not restored", secret.Name)
			}
			if err := run.SeedAPI.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create Secret %q: %w", secret.Name, err)
			}
		}
		return nil
	}, "namespace")
}

// States returns a function that returns the state of a resource of an extension, and creates the objects that it refers to.
func States(run *stage.Run, saved *corev1beta1.ShootStateSpec) func(ctx context.Context, kind, name string) (extensionobject.State, error) {
	return func(ctx context.Context, kind, name string) (extensionobject.State, error) {
		s, err := stateOf(saved, kind, name)
		if err != nil {
			return s, err
		}
		for _, resource := range s.Resources {
			if err := create(ctx, run, saved, resource.ResourceRef); err != nil {
				return s, err
			}
		}
		return s, nil
	}
}

// stateOf returns the state of a resource of an extension. That of the Worker are its machines.
func stateOf(saved *corev1beta1.ShootStateSpec, kind, name string) (extensionobject.State, error) {
	s := extensionobject.State{}
	if found := state.Extension(saved, kind, name); found != nil {
		s.State, s.Resources = found.State, found.Resources
	}
	if kind != "Worker" {
		return s, nil
	}
	machines, err := state.Machines(saved)
	if machines != nil {
		s.State = machines // one that an extension did not remove when it had restored it is older
	}
	return s, err
}

// create creates an object that the state of an extension refers to. One that exists stays.
func create(ctx context.Context, run *stage.Run, saved *corev1beta1.ShootStateSpec, ref autoscalingv1.CrossVersionObjectReference) error {
	at := slices.IndexFunc(saved.Resources, func(r corev1beta1.ResourceData) bool { return r.CrossVersionObjectReference == ref })
	if at < 0 {
		return fmt.Errorf("the ShootState has no %s %q", ref.Kind, ref.Name)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(saved.Resources[at].Data.Raw, &object.Object); err != nil {
		return fmt.Errorf("%s %q of the ShootState cannot be decoded", ref.Kind, ref.Name) // the error itself may quote its data
	}
	if gvk := object.GroupVersionKind(); object.GetName() != ref.Name || gvk.Kind != ref.Kind || object.GetAPIVersion() != ref.APIVersion || !state.Restorable(gvk, ref.Name) {
		return fmt.Errorf("%s %q of the ShootState: an extension can refer to Secrets and ConfigMaps only, and not to those of ManagedResources", ref.Kind, ref.Name)
	}
	if kind, _, _ := unstructured.NestedString(object.Object, "type"); kind == string(corev1.SecretTypeServiceAccountToken) {
		return fmt.Errorf("Secret %q of the ShootState: its type is for tokens of ServiceAccounts, which are those of one seed", ref.Name)
	}
	object.SetNamespace(run.Namespace)
	object.SetLabels(withoutOrders(object.GetLabels()))
	if err := run.SeedAPI.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s %q: %w", ref.Kind, ref.Name, err)
	}
	return nil
}

// withoutOrders returns labels without those of orders for tokens, which this seed would carry out with its own permissions in the garden: whoever wrote the
// ShootState in the former seed must not get them. Annotations alone order nothing.
func withoutOrders(labels map[string]string) map[string]string {
	labels = maps.Clone(labels)
	delete(labels, resourcesv1alpha1.ResourceManagerPurpose)
	delete(labels, securityv1alpha1.LabelPurpose)
	return labels
}
