package plant

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/destination"
)

// Reasons of the conditions.
const (
	reasonKubeconfig   = "KubeconfigUnusable"
	reasonHealthz      = "HealthzRequestSucceeded"
	reasonHealthzError = "HealthzRequestFailed"
	reasonDown         = "APIServerDown"
	reasonNodes        = "EveryNodeReady"
	reasonNodesError   = "NodesUnknown"
	reasonUnready      = "NodesUnhealthy"
)

// namedNodes is how many nodes that are not ready a message names.
const namedNodes = 5

// conditions returns the conditions of a Plant.
func conditions(o *observed) []corev1beta1.Condition {
	available := corev1beta1.Condition{
		Type: corev1beta1.ShootAPIServerAvailable, Status: corev1beta1.ConditionTrue,
		Reason: reasonHealthz, Message: "API server /healthz endpoint responded with success status code.",
	}
	every := corev1beta1.Condition{Type: corev1beta1.ShootEveryNodeReady, Status: corev1beta1.ConditionUnknown}
	switch {
	case o.kubeconfigProblem != "":
		available.Status, available.Reason, available.Message = corev1beta1.ConditionUnknown, reasonKubeconfig, o.kubeconfigProblem
		every.Reason, every.Message = reasonKubeconfig, o.kubeconfigProblem
	case o.healthzError != nil:
		available.Status, available.Reason = corev1beta1.ConditionFalse, reasonHealthzError
		available.Message = "Request to /healthz of the API server: " + explain(o.healthzError) + "."
		every.Reason, every.Message = reasonDown, "The state of nodes is unknown, as the API server is not available."
	case o.nodesError != nil:
		every.Reason, every.Message = reasonNodesError, "Request for the nodes: "+explain(o.nodesError)+"."
	default:
		every.Status, every.Reason, every.Message = nodesReady(&o.nodes)
	}
	return []corev1beta1.Condition{available, every}
}

// nodesReady returns status, reason and message of the condition for nodes.
func nodesReady(n *nodes) (status corev1beta1.ConditionStatus, reason, message string) {
	switch {
	case n.total == 0:
		return corev1beta1.ConditionTrue, reasonNodes, "The cluster has no nodes."
	case n.unready == 0:
		return corev1beta1.ConditionTrue, reasonNodes, "All nodes are ready."
	}
	quoted := make([]string, len(n.unreadyNames))
	for i, name := range n.unreadyNames {
		quoted[i] = strconv.Quote(name)
	}
	message = fmt.Sprintf("%d of %d nodes are not ready: %s", n.unready, n.total, strings.Join(quoted, ", "))
	if more := n.unready - len(quoted); more > 0 {
		message += fmt.Sprintf(" and %d more", more)
	}
	return corev1beta1.ConditionFalse, reasonUnready, message + "."
}

// explain says why a request failed, in our own words: what a server answers, or which address a name has, could be from where tenants
// cannot reach.
func explain(err error) string {
	var (
		status      *statusError
		blocked     *destination.BlockedError
		certificate *tls.CertificateVerificationError
		lookup      *net.DNSError
		network     net.Error
	)
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &blocked):
		return blocked.Error()
	case errors.Is(err, kube.ErrRedirected):
		return kube.ErrRedirected.Error()
	case errors.Is(err, kube.ErrTooLarge):
		return kube.ErrTooLarge.Error()
	case errors.Is(err, errTooManyNodes):
		return errTooManyNodes.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("the API server does not respond within %s", checkTimeout)
	case errors.As(err, &certificate):
		return "the certificate of the API server is not one of the CA in the kubeconfig, is for another name, or has expired"
	case errors.As(err, &lookup):
		return "the name of the API server cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused"
	case errors.Is(err, errMalformed):
		return errMalformed.Error()
	}
	return "the connection fails"
}

var (
	// versionFormat is that of gitVersion, such as v1.36.1-eks-a1b2c3 or v1.36.1+k3s1.
	versionFormat = regexp.MustCompile(`^v[0-9][0-9A-Za-z.+_-]{0,62}$`)
	// providerFormat is that of the schemes of provider IDs.
	providerFormat = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
)

// clusterInfo returns the facts about a cluster: those of before, which may be nil, where the check has read none. Values without the usual format
// are left out.
func clusterInfo(before *corev1beta1.ClusterInfo, o *observed) *corev1beta1.ClusterInfo {
	if o.kubeconfigProblem != "" || o.healthzError != nil || o.versionError != nil && o.nodesError != nil {
		return before
	}
	info := ptr.Deref(before, corev1beta1.ClusterInfo{})
	if o.versionError == nil {
		info.Kubernetes.Version = matching(versionFormat, o.version)
	}
	if o.nodesError == nil {
		info.Cloud = corev1beta1.CloudInfo{Type: providerType(o.nodes.providerID), Region: o.nodes.region}
		if len(validation.IsValidLabelValue(info.Cloud.Region)) > 0 {
			info.Cloud.Region = ""
		}
	}
	return &info
}

// providerType returns the type of the infrastructure in the provider ID of a node, such as "aws" of aws:///eu-west-1a/i-0123. It is the one that Gardener's
// extensions have.
func providerType(providerID string) string {
	scheme, _, found := strings.Cut(providerID, "://")
	switch {
	case !found:
		return ""
	case scheme == "gce":
		return "gcp"
	}
	return matching(providerFormat, scheme)
}

func matching(format *regexp.Regexp, value string) string {
	if !format.MatchString(value) {
		return ""
	}
	return value
}
