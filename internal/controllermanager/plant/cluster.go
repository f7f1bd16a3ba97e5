package plant

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"gardener.cloud/gardener/internal/kube"
)

// The limits for answers of a cluster, which is a tenant's and may send as much as it likes.
const (
	// maxResponse is how many bytes a response may have: 40 KiB for each node of a page, which have 10 to 20.
	maxResponse = pageSize * (40 << 10)
	// pageSize is how many nodes are listed at once, as many may not fit into the memory of the process.
	pageSize = 100
	// maxNodes is how many nodes a cluster may have: twice as many as Kubernetes supports.
	maxNodes = 10_000
	// maxConditions is how many conditions a node may have, which are five and those of a few agents: empty ones need ten times as much memory as in the response.
	maxConditions = 100
	// maxContinue is how many bytes the token for the next page may have, as it goes into the URL of the next request. API servers put a name into it.
	maxContinue = 4 << 10
)

var (
	errTooManyNodes      = errors.New("there are too many nodes")
	errTooManyConditions = errors.New("a node has too many conditions")
	errContinue          = errors.New("the token for the next page is too long")
	errMalformed         = errors.New("the response is malformed")
)

// statusError is an error status of a response.
type statusError struct{ code int }

// Error implements error.
func (e *statusError) Error() string {
	return fmt.Sprintf("the API server answers with status %d %s", e.code, http.StatusText(e.code))
}

// cluster is the cluster of a Plant. Its client is not one of Kubernetes: all fields of a node, in the types of Kubernetes, would be
// far larger than the response.
type cluster struct {
	client *http.Client
	server *url.URL
}

// connect returns the cluster that a kubeconfig is for. There is no request yet, and errors do not quote the kubeconfig.
func connect(kubeconfig []byte, blocked func(host string) string) (*cluster, error) {
	config, err := kube.ConfigOfUser(kubeconfig, blocked)
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, errors.New("its server is not a URL")
	}
	kube.LimitResponses(config, maxResponse)
	httpClient, err := kube.HTTPClientOfUser(config, blocked)
	if err != nil {
		return nil, errors.New("its certificates cannot be used")
	}
	return &cluster{client: httpClient, server: server}, nil
}

// observed is what a check has found out.
type observed struct {
	// kubeconfigProblem is why there is no kubeconfig that can be used. Then there was no request.
	kubeconfigProblem string
	// healthzError is the error of the API server's health check. After it, there was no other request.
	healthzError error
	// version is that of the API server.
	version      string
	versionError error
	nodes        nodes
	nodesError   error
}

// nodes are those of a cluster.
type nodes struct {
	total int
	// unready is how many are not ready.
	unready int
	// unreadyNames are the first names of those, in the order of the alphabet, as a message has them.
	unreadyNames []string
	// providerID and region are those of the first node that has one.
	providerID, region string
}

// check requests the health and the version of the API server, and lists the nodes.
func (c *cluster) check(ctx context.Context) *observed {
	o := &observed{healthzError: c.get(ctx, "/healthz", nil, nil)}
	if o.healthzError != nil {
		return o
	}
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	o.versionError = c.get(ctx, "/version", nil, &version)
	o.version = version.GitVersion
	o.nodes, o.nodesError = c.listNodes(ctx)
	return o
}

// node is what is read of a node.
type node struct {
	Metadata struct {
		Name   string `json:"name"`
		Labels struct {
			Region     string `json:"topology.kubernetes.io/region"`
			BetaRegion string `json:"failure-domain.beta.kubernetes.io/region"`
		} `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		ProviderID string `json:"providerID"`
	} `json:"spec"`
	Status struct {
		Conditions nodeConditions `json:"conditions"`
	} `json:"status"`
}

// nodeConditions are the conditions of a node.
type nodeConditions []struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// UnmarshalJSON implements json.Unmarshaler. It ends with an error after maxConditions.
func (n *nodeConditions) UnmarshalJSON(data []byte) (err error) {
	*n, err = readList[nodeConditions](data, maxConditions, errTooManyConditions)
	return err
}

// nodePage is a page of a list of nodes.
type nodePage struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items nodeItems `json:"items"`
}

// nodeItems are the nodes of a page.
type nodeItems []node

// UnmarshalJSON implements json.Unmarshaler. It ends with an error after as many nodes as were requested: a list of millions of empty
// ones is a small response.
func (n *nodeItems) UnmarshalJSON(data []byte) (err error) {
	*n, err = readList[nodeItems](data, pageSize, errTooManyNodes)
	return err
}

// readList reads a list in JSON up to a limit, and returns tooMany if it is longer.
func readList[list ~[]item, item any](data []byte, limit int, tooMany error) (list, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	token, err := decoder.Token()
	if err != nil || token == nil { // an empty list may be null
		return nil, err
	}
	if token != json.Delim('[') {
		return nil, errMalformed
	}
	var all list
	for decoder.More() {
		if len(all) == limit {
			return nil, tooMany
		}
		var next item
		if err := decoder.Decode(&next); err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	return all, nil
}

// listNodes reads all nodes, page by page. With an error, it returns none.
func (c *cluster) listNodes(ctx context.Context) (nodes, error) {
	query, all := url.Values{"limit": {strconv.Itoa(pageSize)}}, nodes{}
	for {
		page := &nodePage{}
		if err := c.get(ctx, "/api/v1/nodes", query, page); err != nil {
			return nodes{}, err
		}
		for i := range page.Items {
			all.add(&page.Items[i])
		}
		switch next := page.Metadata.Continue; {
		case next == "":
			return all, nil
		case len(next) > maxContinue:
			return nodes{}, errors.Join(errMalformed, errContinue)
		case len(page.Items) == 0 || all.total >= maxNodes:
			return nodes{}, errTooManyNodes
		default:
			query.Set("continue", next)
		}
	}
}

func (n *nodes) add(node *node) {
	n.total++
	if !node.ready() {
		n.addUnready(node.Metadata.Name)
	}
	n.providerID = cmp.Or(n.providerID, node.Spec.ProviderID)
	n.region = cmp.Or(n.region, node.Metadata.Labels.Region, node.Metadata.Labels.BetaRegion)
}

func (n *nodes) addUnready(name string) {
	n.unready++
	if len(name) > validation.DNS1123SubdomainMaxLength || len(validation.IsDNS1123Subdomain(name)) > 0 { // it is not from an API server
		name = "(invalid name)"
	}
	at, _ := slices.BinarySearch(n.unreadyNames, name)
	n.unreadyNames = slices.Insert(n.unreadyNames, at, name)
	n.unreadyNames = n.unreadyNames[:min(namedNodes, len(n.unreadyNames))]
}

func (n *node) ready() bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == string(corev1.NodeReady) {
			return condition.Status == string(corev1.ConditionTrue)
		}
	}
	return false
}

// get makes a request, and decodes the response into a value unless it is nil.
func (c *cluster) get(ctx context.Context, path string, query url.Values, into any) error {
	target := c.server.JoinPath(path)
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return &statusError{response.StatusCode}
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		// When the time is over, what the read returns may only be that the connection is closed.
		return errors.Join(errMalformed, err, ctx.Err())
	}
	return nil
}

// withoutURL returns the cause of an error of a request. The URL is as long as the tenant and the server want it to be.
func withoutURL(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}
