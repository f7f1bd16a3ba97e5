// Package restoration is the stage that restores a control plane on another seed: its credentials and backups, and the states of its extensions.
package restoration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
)

// machineState is the name of the data in a ShootState that the Worker is restored with.
const machineState = "machine-state"

// Saved is what the gardenlet of the other seed has saved of a control plane.
type Saved struct {
	corev1beta1.ShootStateSpec
	// SeedAPI and Namespace are where it is restored.
	SeedAPI   client.Client
	Namespace string
}

// Credentials returns the task that creates the Secrets that were saved. It comes before credentials are generated: those that exist are kept.
func Credentials(run *stage.Run, saved *Saved) flow.Task {
	return flow.Do("restored-credentials", "Restoring credentials from the ShootState", func(ctx context.Context) error {
		for _, data := range saved.Gardener {
			if data.Type != constants.DataTypeSecret {
				continue
			}
			secret, err := secretOf(data)
			if err != nil {
				return err
			}
			secret.Namespace = run.Namespace
			if err := run.SeedAPI.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create Secret %q: %w", secret.Name, err)
			}
		}
		return nil
	}, "namespace")
}

// secretOf decodes a Secret. Former versions saved nothing but its data. No error quotes the content.
func secretOf(saved corev1beta1.GardenerResourceData) (*corev1.Secret, error) {
	invalid := fmt.Errorf("Secret %q in the ShootState cannot be decoded", saved.Name)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(saved.Data.Raw, &fields); err != nil {
		return nil, invalid
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: saved.Name, Labels: saved.Labels}}
	if wrapped := fields["data"]; len(wrapped) > 0 && wrapped[0] == '{' { // values of plain data are strings
		if err := json.Unmarshal(saved.Data.Raw, secret); err != nil {
			return nil, invalid
		}
		return secret, nil
	}
	secret.Type, secret.Immutable = corev1.SecretTypeOpaque, new(true)
	secret.Data = map[string][]byte{}
	for key, raw := range fields {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, invalid
		}
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, invalid
		}
		secret.Data[key] = value
	}
	return secret, nil
}

// State returns the state of a resource of an extension, and creates the objects that it refers to.
func (s *Saved) State(ctx context.Context, kind, name string) (extensionobject.State, error) {
	state := extensionobject.State{}
	at := slices.IndexFunc(s.Extensions, func(e corev1beta1.ExtensionResourceState) bool { return e.Kind == kind && e.Name != nil && *e.Name == name })
	if at >= 0 {
		state.State, state.Resources = s.Extensions[at].State, s.Extensions[at].Resources
	}
	if kind == "Worker" {
		if machines := slices.IndexFunc(s.Gardener, func(d corev1beta1.GardenerResourceData) bool { return d.Name == machineState }); machines >= 0 {
			if state.State != nil {
				return state, errors.New("the ShootState has a state of the Worker and one of its machines")
			}
			state.State = &s.Gardener[machines].Data
		}
	}
	for _, resource := range state.Resources {
		if err := s.create(ctx, resource.ResourceRef); err != nil {
			return state, err
		}
	}
	return state, nil
}

// create creates an object that the state of an extension refers to. One that exists stays.
func (s *Saved) create(ctx context.Context, ref autoscalingv1.CrossVersionObjectReference) error {
	at := slices.IndexFunc(s.Resources, func(r corev1beta1.ResourceData) bool { return r.CrossVersionObjectReference == ref })
	if at < 0 {
		return fmt.Errorf("the ShootState has no %s %q", ref.Kind, ref.Name)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(s.Resources[at].Data.Raw, &object.Object); err != nil {
		return fmt.Errorf("%s %q in the ShootState cannot be decoded", ref.Kind, ref.Name) // the error itself may quote its data
	}
	object.SetNamespace(s.Namespace)
	if err := s.SeedAPI.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s %q: %w", ref.Kind, ref.Name, err)
	}
	return nil
}
