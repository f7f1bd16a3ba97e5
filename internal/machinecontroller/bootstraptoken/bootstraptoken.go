// Package bootstraptoken creates and deletes the tokens with which machines join their cluster.
//
// It writes Secrets in the namespace kube-system of the target cluster, one per machine that has not joined yet.
package bootstraptoken

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// Placeholders in user data. They may be escaped as in a URL.
const (
	// Placeholder stands for the token.
	Placeholder = "<<BOOTSTRAP_TOKEN>>"
	// MachinePlaceholder stands for the name of the Machine.
	MachinePlaceholder = "<<MACHINE_NAME>>"
)

// Tokens creates and deletes tokens.
type Tokens struct {
	// TargetCache is a client of the target cluster, with Secrets read from the API server.
	TargetCache client.Client
	// ExtraGroups are groups of the user of a token, separated by commas, besides system:bootstrappers.
	ExtraGroups string
}

// Needed reports whether user data has a placeholder for a token.
func Needed(userData []byte) bool {
	return bytes.Contains(userData, []byte(Placeholder)) || bytes.Contains(userData, []byte(url.QueryEscape(Placeholder)))
}

// Render replaces the placeholders in user data.
func Render(userData []byte, token, machine string) []byte {
	for placeholder, value := range map[string]string{Placeholder: token, MachinePlaceholder: machine} {
		userData = bytes.ReplaceAll(userData, []byte(placeholder), []byte(value))
		userData = bytes.ReplaceAll(userData, []byte(url.QueryEscape(placeholder)), []byte(url.QueryEscape(value)))
	}
	return userData
}

// Ensure returns a token for a machine that is valid for the given time at least. It is the same token each time.
func (t *Tokens) Ensure(ctx context.Context, machine *machinev1alpha1.Machine, now time.Time, valid time.Duration) (string, error) {
	id := idOf(machine)
	secret := &corev1.Secret{}
	err := t.TargetCache.Get(ctx, key(id), secret)
	switch {
	case apierrors.IsNotFound(err):
		content := make([]byte, 8)
		rand.Read(content)
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key(id).Namespace, Name: key(id).Name},
			Type:       corev1.SecretTypeBootstrapToken,
			Data: map[string][]byte{
				"description": []byte("Lets machine " + machine.Name + " join the cluster."),
				"token-id":    []byte(id), "token-secret": []byte(hex.EncodeToString(content)), "expiration": expiration(now, valid),
				"usage-bootstrap-authentication": []byte("true"), "usage-bootstrap-signing": []byte("true"),
			},
		}
		if t.ExtraGroups != "" {
			secret.Data["auth-extra-groups"] = []byte(t.ExtraGroups)
		}
		if err := t.TargetCache.Create(ctx, secret); err != nil {
			return "", fmt.Errorf("create the bootstrap token of machine %s: %w", machine.Name, err)
		}
	case err != nil:
		return "", fmt.Errorf("read the bootstrap token of machine %s: %w", machine.Name, err)
	case !validUntil(secret, now.Add(valid)):
		patch := client.MergeFrom(secret.DeepCopy())
		secret.Data["expiration"] = expiration(now, valid)
		if err := t.TargetCache.Patch(ctx, secret, patch); err != nil {
			return "", fmt.Errorf("renew the bootstrap token of machine %s: %w", machine.Name, err)
		}
	}
	return id + "." + string(secret.Data["token-secret"]), nil
}

// Delete deletes the token of a machine.
func (t *Tokens) Delete(ctx context.Context, machine *machinev1alpha1.Machine) error {
	name := key(idOf(machine))
	err := t.TargetCache.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the bootstrap token of machine %s: %w", machine.Name, err)
	}
	return nil
}

// idOf is derived from the Machine, so that it is found again after a pass that ended early. A new Machine of the same name has another one.
func idOf(machine *machinev1alpha1.Machine) string {
	sum := sha256.Sum256([]byte(machine.Namespace + "/" + machine.Name + "/" + string(machine.UID)))
	return hex.EncodeToString(sum[:3])
}

func key(id string) client.ObjectKey {
	return client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id}
}

func expiration(now time.Time, valid time.Duration) []byte {
	return []byte(now.Add(valid).UTC().Format(time.RFC3339))
}

func validUntil(secret *corev1.Secret, end time.Time) bool {
	expires, err := time.Parse(time.RFC3339, string(secret.Data["expiration"]))
	return err == nil && expires.After(end)
}
