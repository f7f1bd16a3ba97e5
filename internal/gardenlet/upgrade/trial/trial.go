// Package trial records in the cluster of a gardenlet that it is deployed with another chart or configuration, and what was there before, and judges
// whether the new one works. It is for gardenlets that deploy themselves, and for those of ManagedSeeds.
//
// The process that begins an upgrade is replaced by it, so nothing that it knows counts: the record is a Secret, which the gardenlet that begins, the
// one that is deployed, and the guard that decides about it share. Who writes it names the version that it has read, so that two do not decide at once.
package trial

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// SecretName is the name of the Secret with the record, in the namespace of the gardenlet.
const SecretName = "gardenlet-upgrade"

// The keys of the Secret. The objects before are a JSON list, compressed.
const (
	trialKey    = "trial.json"
	previousKey = "previous.json.gz"
)

// maxPrevious is the largest list of objects that is read, in bytes. The chart has some ten thousand.
const maxPrevious = 16 << 20

// State is how far a trial is.
type State string

// A trial is prepared by the gardenlet, which then begins it. The guard ends it.
const (
	// Preparing is before anything is changed: the guard is deployed.
	Preparing State = "Preparing"
	// Trying is while it is not known whether the new gardenlet works.
	Trying State = "Trying"
	// Succeeded is when it works.
	Succeeded State = "Succeeded"
	// RollingBack is when it does not work, and the objects before are applied.
	RollingBack State = "RollingBack"
	// RolledBack is when they were applied.
	RolledBack State = "RolledBack"
)

// Trial is the record of the last upgrade.
type Trial struct {
	// ID identifies what is tried: chart, deployment and configuration. Empty if there was no upgrade.
	ID string `json:"id"`
	// Generation is that of the Gardenlet for which it was tried, or for which it was found to be rolled back already.
	Generation int64 `json:"generation,omitempty"`
	// State is how far it is.
	State State `json:"state"`
	// Since is when the state was entered.
	Since metav1.Time `json:"since"`
	// Applied is when all objects of what is tried had been applied. Zero before: an update that is applied in part says nothing about its gardenlet.
	Applied metav1.Time `json:"applied"`
	// Lease is the name of the Lease that the leader of the gardenlets holds. Empty without a leader election.
	Lease string `json:"lease,omitempty"`
	// Reason says why it did not work.
	Reason string `json:"reason,omitempty"`
	// Confirmed is the pod whose gardenlet has renewed its Lease in the garden after Applied. It shows that what leads reaches the garden.
	Confirmed string `json:"confirmed,omitempty"`
	// RestoreError is why the objects before could not be applied yet.
	RestoreError string `json:"restoreError,omitempty"`
	// Previous are the objects before, until the trial has succeeded.
	Previous []Previous `json:"-"`

	// key is that of the Secret.
	key client.ObjectKey
	// resourceVersion is that of the Secret. Empty if it does not exist.
	resourceVersion string
}

// Key is where the record is.
func Key() client.ObjectKey {
	return client.ObjectKey{Namespace: constants.GardenNamespace, Name: SecretName}
}

// Read returns the record. It is empty if there was no upgrade.
func Read(ctx context.Context, reader client.Reader) (*Trial, error) {
	return ReadFrom(ctx, reader, Key())
}

// ReadFrom is Read for a record in another Secret.
func ReadFrom(ctx context.Context, reader client.Reader, key client.ObjectKey) (*Trial, error) {
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return &Trial{key: key}, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", key, err)
	}
	t := &Trial{key: key, resourceVersion: secret.ResourceVersion}
	if err := json.Unmarshal(secret.Data[trialKey], t); err != nil {
		return nil, fmt.Errorf("key %s of Secret %q: %w", trialKey, key, err)
	}
	previous, err := decode(secret.Data[previousKey])
	if err != nil {
		return nil, fmt.Errorf("key %s of Secret %q: %w", previousKey, key, err)
	}
	t.Previous = previous
	return t, nil
}

// Write writes the record. The error is a conflict if it has changed since it was read.
func (t *Trial) Write(ctx context.Context, c client.Client) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.key.Namespace, Name: t.key.Name, ResourceVersion: t.resourceVersion, Labels: map[string]string{"app": "gardener", "role": "gardenlet-guard"},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{trialKey: data},
	}
	if len(t.Previous) > 0 {
		if secret.Data[previousKey], err = encode(t.Previous); err != nil {
			return err
		}
	}
	write := func() error { return c.Update(ctx, secret) }
	if t.resourceVersion == "" {
		write = func() error { return c.Create(ctx, secret) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("write Secret %q: %w", t.key, err)
	}
	t.resourceVersion = secret.ResourceVersion
	return nil
}

func encode(previous []Previous) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	if err := errors.Join(json.NewEncoder(compressed).Encode(previous), compressed.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func decode(data []byte) ([]Previous, error) {
	if len(data) == 0 {
		return nil, nil
	}
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(compressed, maxPrevious))
	if err != nil {
		return nil, err
	}
	var previous []Previous
	return previous, json.Unmarshal(text, &previous)
}
