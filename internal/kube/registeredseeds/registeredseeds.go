// Package registeredseeds remembers the names of all Seeds that have existed in the garden, in the ConfigMap registered-seeds.
//
// A gardenlet may choose what its Seed refers to only when it registers a new one. The certificate of a gardenlet outlives its Seed, so a Seed
// that does not exist is not always new.
package registeredseeds

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Name is the name of the ConfigMap in the namespace garden. Its keys are names of Seeds, its values are empty.
const Name = "registered-seeds"

// Contains reports whether a Seed of a name has existed.
func Contains(ctx context.Context, c client.Reader, seed string) (bool, error) {
	configMap := empty()
	if err := c.Get(ctx, client.ObjectKeyFromObject(configMap), configMap); err != nil {
		return false, client.IgnoreNotFound(wrap("read", err))
	}
	_, found := configMap.Data[seed]
	return found, nil
}

// Add remembers a Seed.
func Add(ctx context.Context, c client.Client, seed string) error {
	err := patch(ctx, c, seed, new(string))
	if !apierrors.IsNotFound(err) {
		return wrap("add the Seed to", err)
	}
	configMap := empty()
	configMap.Data = map[string]string{seed: ""}
	// Another process may have created it: the next try patches.
	return wrap("create", c.Create(ctx, configMap))
}

// Remove removes a Seed: its next registration may choose what it refers to.
func Remove(ctx context.Context, c client.Client, seed string) error {
	return wrap("remove the Seed from", client.IgnoreNotFound(patch(ctx, c, seed, nil)))
}

// patch sets the value of a key, or deletes it. Other keys may change at the same time.
func patch(ctx context.Context, c client.Client, seed string, value *string) error {
	data, err := json.Marshal(map[string]any{"data": map[string]*string{seed: value}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, empty(), client.RawPatch(types.MergePatchType, data))
}

func empty() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: Name}}
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s ConfigMap %q: %w", what, Name, err)
	}
	return nil
}
