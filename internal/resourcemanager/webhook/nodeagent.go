package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
)

const (
	// maxReviewBytes limits the size of a SubjectAccessReview, and reviewTimeout the time of its response.
	maxReviewBytes, reviewTimeout = 1 << 20, 10 * time.Second

	nodeAgentPrefix = "gardener-node-agent-" // of Leases, and of the Secrets of pools
	valitailSecret  = "gardener-valitail"    // a name
)

// nodeAgents authorizes gardener-node-agents, for their own node only. It has no opinion about other users.
type nodeAgents struct {
	// source has the Machines, in a namespace; an empty one means that there are none, and agents are named after their nodes.
	source           client.Reader
	machineNamespace string
	target           client.Reader
	// targetAPI reads pods, which are in no cache.
	targetAPI client.Reader
}

// ServeHTTP handles a SubjectAccessReview.
func (n *nodeAgents) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithTimeout(request.Context(), reviewTimeout)
	defer cancel()
	review := &authorizationv1.SubjectAccessReview{}
	if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, maxReviewBytes)).Decode(review); err != nil {
		http.Error(w, "the body is not a SubjectAccessReview", http.StatusBadRequest)
		return
	}
	reason, err := n.refuse(ctx, &review.Spec)
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: reason == "" && err == nil, Reason: reason}
	if err != nil {
		review.Status.EvaluationError = err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		logf.FromContext(ctx).V(1).Info("Writing the response failed", "reason", err.Error()) // the client has closed the connection
	}
}

// refuse returns why a request is not allowed, or an empty text if it is.
func (n *nodeAgents) refuse(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (string, error) {
	name, ok := strings.CutPrefix(spec.User, constants.NodeAgentUserNamePrefix)
	if !ok || name == "" || !slices.Contains(spec.Groups, constants.NodeAgentsGroup) {
		return "not a node agent", nil
	}
	a := spec.ResourceAttributes
	// Agents write a condition into the status of their Node.
	if a == nil || a.Subresource != "" && (a.Group != "" || a.Resource != "nodes" || a.Subresource != "status" || a.Verb != "patch") {
		return "node agents have no permission for this resource", nil
	}
	verbs := func(allowed ...string) bool { return slices.Contains(allowed, a.Verb) }
	switch a.Group + "/" + a.Resource {
	case "certificates.k8s.io/certificatesigningrequests":
		return n.refuseCertificate(ctx, spec.User, a)
	case "/events", "events.k8s.io/events":
		if verbs("create", "patch") {
			return "", nil
		}
	case "coordination.k8s.io/leases":
		if !verbs("get", "list", "watch", "create", "update") || a.Namespace != metav1.NamespaceSystem {
			break
		}
		node, _, err := n.nodeOf(ctx, name)
		// The API server does not know the name of what is being created.
		if err == nil && node != "" && (a.Name == nodeAgentPrefix+node || a.Verb == "create" && a.Name == "") {
			return "", nil
		}
		return "not the Lease of the agent's own node", err
	case "/nodes":
		if verbs("list") {
			return "", nil
		}
		if !verbs("get", "watch", "patch", "update") {
			break
		}
		node, _, err := n.nodeOf(ctx, name)
		if err == nil && node != "" && a.Name == node {
			return "", nil
		}
		return "not the agent's own node", err
	case "/pods":
		return n.refusePod(ctx, name, a)
	case "/secrets":
		if !verbs("get", "list", "watch") || a.Namespace != metav1.NamespaceSystem || a.Name == "" {
			break
		}
		if a.Name == valitailSecret {
			return "", nil
		}
		_, secrets, err := n.nodeOf(ctx, name)
		if err == nil && slices.Contains(secrets, a.Name) {
			return "", nil
		}
		return "not a Secret of the agent's worker pool", err
	}
	return "node agents have no permission for this resource", nil
}

// refusePod allows agents to list and delete the pods of their own node, which they do at the end of an update in place.
func (n *nodeAgents) refusePod(ctx context.Context, agent string, a *authorizationv1.ResourceAttributes) (string, error) {
	node, _, err := n.nodeOf(ctx, agent)
	if err != nil || node == "" {
		return "the agent has no node", err
	}
	switch {
	case a.Verb == "list" && a.FieldSelector != nil && slices.ContainsFunc(a.FieldSelector.Requirements, func(r metav1.FieldSelectorRequirement) bool {
		return r.Key == "spec.nodeName" && r.Operator == metav1.FieldSelectorOpIn && slices.Equal(r.Values, []string{node})
	}):
		return "", nil
	case a.Verb == "delete" && a.Name != "":
		pod := &corev1.Pod{}
		if err := n.targetAPI.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name}, pod); err != nil {
			return "the pod cannot be read", client.IgnoreNotFound(err)
		}
		if pod.Spec.NodeName == node {
			return "", nil
		}
	}
	return "not a pod of the agent's own node", nil
}

func (n *nodeAgents) refuseCertificate(ctx context.Context, user string, a *authorizationv1.ResourceAttributes) (string, error) {
	switch {
	case a.Verb == "create":
		return "", nil
	case a.Verb != "get" || a.Name == "":
		return "node agents create and get requests", nil
	}
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := n.target.Get(ctx, client.ObjectKey{Name: a.Name}, csr); err != nil {
		return "the request cannot be read", client.IgnoreNotFound(err)
	}
	if csr.Spec.Username != user {
		return "not a request of the agent", nil
	}
	return "", nil
}

// nodeOf returns the node of an agent, empty if it has none yet, and the Secrets with the configuration of its worker pool: the current and
// the desired one.
func (n *nodeAgents) nodeOf(ctx context.Context, agent string) (name string, secrets []string, err error) {
	name = agent
	believed := func(secret string) bool { return strings.HasPrefix(secret, nodeAgentPrefix) }
	if n.machineNamespace != "" {
		machine := &machinev1alpha1.Machine{}
		if err := n.source.Get(ctx, client.ObjectKey{Namespace: n.machineNamespace, Name: agent}, machine); err != nil {
			return "", nil, fmt.Errorf("read Machine %q: %w", agent, err)
		}
		name = machine.Labels[machinev1alpha1.NodeLabelKey]
		labels := machine.Spec.NodeTemplate.ObjectMeta.Labels
		secrets = append(secrets, labels[constants.WorkerPoolGardenerNodeAgentSecretName])
		believed = func(secret string) bool {
			return operatingsystemconfig.IsSecretOf(labels[constants.WorkerPool], secret)
		}
	}
	if name == "" {
		return "", secrets, nil
	}
	node := &corev1.Node{}
	if err := n.target.Get(ctx, client.ObjectKey{Name: name}, node); client.IgnoreNotFound(err) != nil {
		return "", nil, fmt.Errorf("read Node %q: %w", name, err)
	}
	// The agent may change the labels of its Node, so these must not give access to any other Secret.
	if secret := node.Labels[constants.WorkerPoolGardenerNodeAgentSecretName]; believed(secret) {
		secrets = append(secrets, secret)
	}
	return name, secrets, nil
}
