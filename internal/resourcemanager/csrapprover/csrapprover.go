// Package csrapprover approves or denies CertificateSigningRequests for serving certificates of kubelets and client certificates of
// gardener-node-agents.
//
// It reads CertificateSigningRequests and Nodes of the target cluster and Machines of the source cluster, and writes the conditions Approved and
// Denied. Only CertificateSigningRequests are cached, as decisions are rare.
// Source: concepts.txt, Gardener Resource Manager, "CertificateSigningRequest Approver".
package csrapprover

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// passTimeout limits a reconciliation, which makes a few requests.
	passTimeout = time.Minute

	nodeUserPrefix = "system:node:"
	// bootstrapUserPrefix is the prefix of users of bootstrap tokens.
	bootstrapUserPrefix = "system:bootstrap:"
	nodesGroup          = "system:nodes"
	// migratingUser is the user of node agents from before they had certificates.
	migratingUser = "system:serviceaccount:kube-system:gardener-node-agent"
)

// Add adds the controller to a manager. The Machines are in a namespace of the source cluster; an empty one means that the cluster has
// no Machines, so that requests are checked against Nodes only.
func Add(mgr manager.Manager, sourceCluster, targetCluster cluster.Cluster, machineNamespace string, concurrency int) error {
	r := &reconciler{
		machines: sourceCluster.GetAPIReader(), machineNamespace: machineNamespace,
		targetClient: targetCluster.GetClient(), targetReader: targetCluster.GetAPIReader(),
	}
	c, err := controller.New("csr-approver", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: cmp.Or(concurrency, 1)})
	if err != nil {
		return err
	}
	return c.Watch(source.Kind(targetCluster.GetCache(), &certificatesv1.CertificateSigningRequest{},
		&handler.TypedEnqueueRequestForObject[*certificatesv1.CertificateSigningRequest]{}, predicate.NewTypedPredicateFuncs(concerns)))
}

// concerns says whether a request is neither approved nor denied, and for one of the signers that are handled here.
func concerns(csr *certificatesv1.CertificateSigningRequest) bool {
	decided := func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed
	}
	return len(csr.Status.Certificate) == 0 && !slices.ContainsFunc(csr.Status.Conditions, decided) &&
		(csr.Spec.SignerName == certificatesv1.KubeletServingSignerName || csr.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName)
}

// reconciler approves or denies a request.
type reconciler struct {
	machines         client.Reader
	machineNamespace string
	targetClient     client.Client
	targetReader     client.Reader
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := r.targetClient.Get(ctx, request.NamespacedName, csr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !concerns(csr) {
		return reconcile.Result{}, nil
	}
	wanted, err := parse(csr.Spec.Request)
	var reason error
	switch {
	case csr.Spec.SignerName == certificatesv1.KubeletServingSignerName && err != nil:
		reason = err
	case csr.Spec.SignerName == certificatesv1.KubeletServingSignerName:
		reason, err = r.checkKubelet(ctx, csr, wanted)
	case err != nil || !strings.HasPrefix(wanted.Subject.CommonName, constants.NodeAgentUserNamePrefix):
		return reconcile.Result{}, nil // the signer is also for other clients
	default:
		reason, err = r.checkAgent(ctx, csr, wanted)
	}
	if err != nil && reason == nil {
		return reconcile.Result{}, err
	}
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "RequestApproved",
		Message: "Approving the certificate, as it is for a node of this cluster.",
	}
	if reason != nil {
		condition.Type, condition.Reason, condition.Message = certificatesv1.CertificateDenied, "RequestDenied", "Denying the certificate: "+reason.Error()
	}
	logf.FromContext(ctx).Info("Deciding about a certificate", "user", csr.Spec.Username, "decision", condition.Type, "message", condition.Message)
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, condition)
	if err := r.targetClient.SubResource("approval").Update(ctx, csr); err != nil {
		return kube.Result(fmt.Errorf("write the decision: %w", err))
	}
	return reconcile.Result{}, nil
}

func parse(raw []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("it has no certificate request in PEM format")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

// checkKubelet returns why the serving certificate of a kubelet is denied, or nil; the second error is a failure of the check.
func (r *reconciler) checkKubelet(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, wanted *x509.CertificateRequest) (reason, err error) {
	if reason := kubeletRequest(csr.Spec.Username, wanted); reason != nil {
		return reason, nil
	}
	name := strings.TrimPrefix(csr.Spec.Username, nodeUserPrefix)
	node := &corev1.Node{}
	switch err := r.targetReader.Get(ctx, client.ObjectKey{Name: name}, node); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no Node %q", name), nil
	case err != nil:
		return nil, fmt.Errorf("read Node %q: %w", name, err)
	}
	if r.machineNamespace != "" {
		machines := &machinev1alpha1.MachineList{}
		if err := r.machines.List(ctx, machines, client.InNamespace(r.machineNamespace), client.MatchingLabels{machinev1alpha1.NodeLabelKey: name}); err != nil {
			return nil, fmt.Errorf("list Machines of Node %q: %w", name, err)
		}
		if count := len(machines.Items); count != 1 {
			return fmt.Errorf("there are %d Machines for Node %q", count, name), nil
		}
	}
	return addressesOf(node, wanted), nil
}

// kubeletRequest validates the request itself.
func kubeletRequest(username string, wanted *x509.CertificateRequest) error {
	switch {
	case !strings.HasPrefix(username, nodeUserPrefix):
		return fmt.Errorf("user %q is not a node", username)
	case len(wanted.DNSNames)+len(wanted.IPAddresses) == 0:
		return errors.New("it has neither DNS names nor IP addresses")
	case wanted.Subject.CommonName != username:
		return fmt.Errorf("common name %q is not that of the user", wanted.Subject.CommonName)
	case !slices.Equal(wanted.Subject.Organization, []string{nodesGroup}):
		return fmt.Errorf("organizations %q are not just %q", wanted.Subject.Organization, nodesGroup)
	}
	return nil
}

// addressesOf returns why the names of a request are not those of a Node, or nil. A kubelet requests all names and addresses that its Node has, also those
// that a cloud-controller-manager has found: with an external address, a certificate for the internal one alone is never requested.
func addressesOf(node *corev1.Node, wanted *x509.CertificateRequest) error {
	var names, addresses, ips []string
	for _, address := range node.Status.Addresses {
		switch address.Type {
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			names = append(names, address.Address)
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			addresses = append(addresses, canonical(address.Address))
		}
	}
	for _, ip := range wanted.IPAddresses {
		ips = append(ips, ip.String())
	}
	if !sameSet(names, wanted.DNSNames) {
		return fmt.Errorf("DNS names %q are not those of the Node, %q", wanted.DNSNames, names)
	}
	if !sameSet(addresses, ips) {
		return fmt.Errorf("IP addresses %q are not those of the Node, %q", ips, addresses)
	}
	return nil
}

func canonical(address string) string {
	if ip := net.ParseIP(address); ip != nil {
		return ip.String()
	}
	return address
}

func sameSet(a, b []string) bool {
	set := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	return slices.Equal(set(a), set(b))
}

// checkAgent returns why the certificate of a node agent is denied, or nil; the second error is a failure of the check.
func (r *reconciler) checkAgent(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, wanted *x509.CertificateRequest) (reason, err error) {
	if reason := agentRequest(csr, wanted); reason != nil {
		return reason, nil
	}
	name := strings.TrimPrefix(wanted.Subject.CommonName, constants.NodeAgentUserNamePrefix)
	if r.machineNamespace == "" {
		return agentUser(csr.Spec.Username, wanted.Subject.CommonName, nil), nil
	}
	machine := &machinev1alpha1.Machine{}
	switch err := r.machines.Get(ctx, client.ObjectKey{Namespace: r.machineNamespace, Name: name}, machine); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no Machine %q", name), nil
	case err != nil:
		return nil, fmt.Errorf("read Machine %q: %w", name, err)
	}
	if reason := agentUser(csr.Spec.Username, wanted.Subject.CommonName, machine); reason != nil {
		return reason, nil
	}
	if node, ok := strings.CutPrefix(csr.Spec.Username, nodeUserPrefix); ok {
		return r.nodeOfAnother(ctx, node, machine)
	}
	return nil, nil
}

// nodeOfAnother returns why a node cannot be the new one of a machine, or nil: another one could read the Secret of its pool, and write its Node. The second
// error is a failure of the check.
func (r *reconciler) nodeOfAnother(ctx context.Context, name string, machine *machinev1alpha1.Machine) (reason, err error) {
	machines := &machinev1alpha1.MachineList{}
	if err := r.machines.List(ctx, machines, client.InNamespace(r.machineNamespace), client.MatchingLabels{machinev1alpha1.NodeLabelKey: name}); err != nil {
		return nil, fmt.Errorf("list Machines of Node %q: %w", name, err)
	}
	if len(machines.Items) > 0 {
		return fmt.Errorf("node %q is that of Machine %q", name, machines.Items[0].Name), nil
	}
	node := &corev1.Node{}
	switch err := r.targetReader.Get(ctx, client.ObjectKey{Name: name}, node); {
	case apierrors.IsNotFound(err): // it is created at any moment
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Node %q: %w", name, err)
	}
	if node.CreationTimestamp.Before(&machine.CreationTimestamp) {
		return fmt.Errorf("node %q is older than Machine %q", name, machine.Name), nil
	}
	return nil, nil
}

// agentRequest validates the request itself. The groups of a certificate determine its permissions, so no other group is allowed.
func agentRequest(csr *certificatesv1.CertificateSigningRequest, wanted *x509.CertificateRequest) error {
	if !slices.Equal(wanted.Subject.Organization, []string{constants.NodeAgentsGroup}) {
		return fmt.Errorf("organizations %q are not just %q", wanted.Subject.Organization, constants.NodeAgentsGroup)
	}
	if slices.Contains(csr.Spec.Usages, certificatesv1.UsageServerAuth) || len(wanted.DNSNames)+len(wanted.IPAddresses) > 0 {
		return errors.New("a client certificate must not have the usages or names of a server certificate")
	}
	return nil
}

// agentUser returns why a user may not have the certificate of a node agent, or nil. Without a Machine, the name of the agent is that of its node.
func agentUser(username, commonName string, machine *machinev1alpha1.Machine) error {
	hasNode := machine != nil && machine.Labels[machinev1alpha1.NodeLabelKey] != ""
	switch {
	case strings.HasPrefix(username, nodeUserPrefix): // a new node
		if machine == nil && strings.TrimPrefix(username, nodeUserPrefix) != strings.TrimPrefix(commonName, constants.NodeAgentUserNamePrefix) {
			return fmt.Errorf("user %q requests a certificate for another node", username)
		}
		if hasNode {
			return fmt.Errorf("Machine %q has a node already", machine.Name)
		}
	case strings.HasPrefix(username, bootstrapUserPrefix) && machine != nil: // a new machine, before its kubelet runs
		if hasNode {
			return fmt.Errorf("Machine %q has a node already", machine.Name)
		}
	case strings.HasPrefix(username, constants.NodeAgentUserNamePrefix): // a renewal
		if username != commonName {
			return fmt.Errorf("user %q requests the certificate of another node agent", username)
		}
	case username == migratingUser && machine != nil: // a node that had a token
		if !hasNode {
			return fmt.Errorf("Machine %q has no node yet", machine.Name)
		}
	default:
		return fmt.Errorf("user %q is not a node agent", username)
	}
	return nil
}
