// Package hosts is the driver for machines that are servers: it writes, per machine, a HostClaim and a Secret with the user data, both in the namespace of the
// control plane, and reads nothing else. The extension provider-hosts does the rest: it has the inventory, and the SSH keys. The Node has the name of the host.
//
// The providerSpec of a MachineClass: api/provider/hosts/v1alpha1, MachineProviderSpec.
package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
)

const (
	// classLabel is the label of claims with their MachineClass.
	classLabel = hostsv1alpha1.GroupName + "/class"
	// userDataKey is the key of the user data in the Secret.
	userDataKey = "userData"
)

// Driver claims hosts.
type Driver struct {
	client client.Client
	cache  cache.Cache
}

// New returns the driver. The client reads HostClaims and Secrets from the API server; the cache has the HostClaims of the namespace of the Machines.
func New(c client.Client, claims cache.Cache) *Driver { return &Driver{client: c, cache: claims} }

var (
	_ driver.Driver   = (*Driver)(nil)
	_ driver.Notifier = (*Driver)(nil)
)

// CreateMachine implements driver.Driver. It may be called for a claim that has no host yet: then the bootstrap token in the user data is a new one.
func (d *Driver) CreateMachine(ctx context.Context, request driver.Request) (driver.Status, error) {
	claim, err := d.claimFor(request)
	if err != nil {
		return driver.Status{}, err
	}
	// The Secret first: the host reads it when it is claimed.
	if err := d.writeUserData(ctx, claim, request.UserData); err != nil {
		return driver.Status{}, err
	}
	if err := d.client.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
		return driver.Status{}, driver.APIErrorf(err, "create HostClaim %s", claim.Name)
	}
	if err := d.client.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return driver.Status{}, driver.APIErrorf(err, "read HostClaim %s", claim.Name)
	}
	switch {
	case claim.DeletionTimestamp != nil:
		return driver.Status{}, driver.Errorf(driver.Aborted, "HostClaim %s of an earlier attempt is being deleted", claim.Name)
	case claim.Status.Bound:
		return status(claim), nil
	case claim.Status.Message != "":
		return driver.Status{}, driver.Errorf(driver.ResourceExhausted, "%s", claim.Status.Message)
	}
	return driver.Status{}, driver.Errorf(driver.DeadlineExceeded, "HostClaim %s has no host yet", claim.Name)
}

// claimFor renders the claim of a machine.
func (d *Driver) claimFor(request driver.Request) (*hostsv1alpha1.HostClaim, error) {
	spec := hostsv1alpha1.HostClaimSpec{UserDataSecretName: secretName(request.Machine.Name)}
	decoder := json.NewDecoder(bytes.NewReader(request.Class.ProviderSpec.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec.MachineProviderSpec); err != nil {
		return nil, driver.Errorf(driver.InvalidArgument, "providerSpec of MachineClass %s: %w", request.Class.Name, err)
	}
	if spec.MachineType == "" {
		return nil, driver.Errorf(driver.InvalidArgument, "providerSpec of MachineClass %s: machineType is required", request.Class.Name)
	}
	return &hostsv1alpha1.HostClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: request.Machine.Namespace, Name: request.Machine.Name, Labels: map[string]string{classLabel: kube.LabelValue(request.Class.Name)},
			// From the beginning, so that the claim exists until its host is cleaned.
			Finalizers: []string{hostsv1alpha1.HostFinalizer},
		},
		Spec: spec,
	}, nil
}

func (d *Driver) writeUserData(ctx context.Context, claim *hostsv1alpha1.HostClaim, userData []byte) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Spec.UserDataSecretName}, Data: map[string][]byte{userDataKey: userData},
	}
	err := d.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = d.client.Patch(ctx, secret, client.Merge)
	}
	if err != nil {
		return driver.APIErrorf(err, "write Secret %s", secret.Name)
	}
	return nil
}

// InitializeMachine implements driver.Driver. A host needs nothing more.
func (d *Driver) InitializeMachine(context.Context, driver.Request) (driver.Status, error) {
	return driver.Status{}, driver.Errorf(driver.Unimplemented, "hosts need no initialization")
}

// GetMachineStatus implements driver.Driver.
func (d *Driver) GetMachineStatus(ctx context.Context, request driver.Request) (driver.Status, error) {
	claim := &hostsv1alpha1.HostClaim{}
	gone := driver.Status{NodeName: strings.TrimPrefix(request.Machine.Spec.ProviderID, hostsv1alpha1.ProviderIDPrefix)}
	if err := d.client.Get(ctx, client.ObjectKeyFromObject(request.Machine), claim); err != nil {
		return gone, driver.APIErrorf(err, "read HostClaim %s", request.Machine.Name)
	}
	if !claim.Status.Bound || claim.Status.Lost || claim.DeletionTimestamp != nil {
		return gone, driver.Errorf(driver.NotFound, "HostClaim %s has no host", claim.Name)
	}
	return status(claim), nil
}

// DeleteMachine implements driver.Driver. The claim exists until its host is cleaned, or is known to be unusable.
func (d *Driver) DeleteMachine(ctx context.Context, request driver.Request) error {
	claim := &hostsv1alpha1.HostClaim{ObjectMeta: metav1.ObjectMeta{Namespace: request.Machine.Namespace, Name: request.Machine.Name}}
	if err := d.client.Delete(ctx, claim); client.IgnoreNotFound(err) != nil {
		return driver.APIErrorf(err, "delete HostClaim %s", claim.Name)
	}
	err := d.client.Get(ctx, client.ObjectKeyFromObject(claim), claim)
	switch {
	case err == nil:
		return driver.Errorf(driver.DeadlineExceeded, "host %q is being cleaned", claim.Status.HostName)
	case !apierrors.IsNotFound(err):
		return driver.APIErrorf(err, "read HostClaim %s", claim.Name)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: secretName(claim.Name)}}
	if err := d.client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return driver.APIErrorf(err, "delete Secret %s", secret.Name)
	}
	return nil
}

// ListMachines implements driver.Driver. A claim without a host counts, too.
func (d *Driver) ListMachines(ctx context.Context, request driver.ClassRequest) (map[string]string, error) {
	claims := &hostsv1alpha1.HostClaimList{}
	if err := d.client.List(ctx, claims, client.InNamespace(request.Class.Namespace), client.MatchingLabels{classLabel: kube.LabelValue(request.Class.Name)}); err != nil {
		return nil, driver.APIErrorf(err, "list HostClaims")
	}
	machines := map[string]string{}
	for i := range claims.Items {
		c := &claims.Items[i]
		id := status(c).ProviderID
		if !c.Status.Bound {
			id = hostsv1alpha1.ProviderIDPrefix + "none/" + c.Name
		}
		machines[id] = c.Name
	}
	return machines, nil
}

// Changes implements driver.Notifier. The name of a claim is that of its Machine. What changes is that it gets a host, loses it, or is deleted.
func (d *Driver) Changes(h handler.EventHandler) source.Source {
	return source.Kind[client.Object](d.cache, &hostsv1alpha1.HostClaim{}, h, predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // all Machines are reconciled when the process starts
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*hostsv1alpha1.HostClaim)
			after, okAfter := e.ObjectNew.(*hostsv1alpha1.HostClaim)
			return ok && okAfter && (before.Status.Bound != after.Status.Bound || before.Status.Lost != after.Status.Lost)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
}

func status(claim *hostsv1alpha1.HostClaim) driver.Status {
	return driver.Status{
		ProviderID: hostsv1alpha1.ProviderIDPrefix + claim.Status.HostName, NodeName: claim.Status.HostName,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: claim.Status.HostName}},
	}
}

func secretName(machine string) string { return "host-" + machine }
