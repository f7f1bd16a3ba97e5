// Package kubeconfig checks kubeconfigs that users hand to processes which are not theirs.
//
// A kubeconfig is more than an address with credentials: it can name programs to run, files to read and proxies to use, where its reader
// runs. What is not on the lists here is refused, so that a field that a later version of Kubernetes adds is refused, too. Processes get what
// Client or Credentials return, written again from the fields that are allowed, never the user's bytes.
//
// Errors name fields and rules, and quote no values. Their type is TypeInvalid for what is no kubeconfig at all.
package kubeconfig

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/util/cert"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/pkg/destination"
)

// The limits of a kubeconfig, so that what a user writes costs the processes that read it little.
const (
	// maxSize is how many bytes it may have: a quarter of what a Secret holds, and enough for dozens of users with certificates.
	maxSize = 256 << 10
	// maxEntries is how many clusters, users or contexts it may have, as certificates and keys of each are parsed.
	maxEntries = 100
	// maxUnknown is how many bytes of a message about an unknown field are kept, as its name may be as long as the kubeconfig.
	maxUnknown = 256
	// summarized is how many errors Summary has.
	summarized = 5
)

var (
	// clusterFields and userFields are the allowed ones: addresses, and data that is in the kubeconfig itself.
	clusterFields = []string{"server", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify", "disable-compression"}
	userFields    = []string{"token", "client-certificate-data", "client-key-data", "username", "password"}
	contextFields = []string{"cluster", "user"}
	// ignoredFields do nothing, and tools write them. They are dropped.
	ignoredFields = []string{"extensions", "namespace"}
)

// Validate checks a kubeconfig of which nothing is known but that somebody may read it. Paths of errors begin with path, which may be nil.
func Validate(data []byte, path *field.Path) field.ErrorList {
	_, errs := parse(data, path, destination.Host)
	return errs
}

// Client returns the kubeconfig for a client of one server: the cluster and the user of the current context.
func Client(data []byte, path *field.Path) ([]byte, field.ErrorList) {
	return ClientOf(data, path, destination.Host)
}

// ClientOf is Client for a process that must not connect to other hosts than control planes: blocked returns why not to one, or "".
func ClientOf(data []byte, path *field.Path, blocked func(host string) string) ([]byte, field.ErrorList) {
	config, errs := parse(data, path, blocked)
	if len(errs) > 0 {
		return nil, errs
	}
	if config.CurrentContext == "" {
		return nil, field.ErrorList{field.Required(path.Child("current-context"), "must be set")}
	}
	clusters, users, contexts, errs := current(config, path)
	if len(errs) > 0 {
		return nil, errs
	}
	config.Clusters, config.AuthInfos, config.Contexts = clusters, users, contexts
	return write(config, path)
}

// Credentials returns the kubeconfig for clients that know their servers from elsewhere, as those of admission webhooks do: users are named
// for the servers that they are for, such as "*.example.com", and the user of the current context, if there is one, is for all others.
func Credentials(data []byte, path *field.Path) ([]byte, field.ErrorList) {
	config, errs := parse(data, path, destination.Host)
	if len(errs) > 0 {
		return nil, errs
	}
	if config.CurrentContext == "" {
		config.Clusters, config.Contexts = nil, nil
	} else if config.Clusters, _, config.Contexts, errs = current(config, path); len(errs) > 0 {
		return nil, errs
	}
	return write(config, path)
}

// SelfContained checks a kubeconfig of which not even that is known whether a process of Gardener reads it: it neither runs programs, nor reads
// files, nor impersonates, and has no fields that cannot be judged. Servers and proxies may be any.
func SelfContained(data []byte, path *field.Path) field.ErrorList {
	config, errs := decode(data, path)
	if config == nil {
		return errs
	}
	for i, named := range config.Clusters {
		if named.Cluster.CertificateAuthority != "" {
			errs = append(errs, field.Forbidden(path.Child("clusters").Index(i).Child("cluster", "certificate-authority"), "is not allowed; use certificate-authority-data"))
		}
	}
	for i, named := range config.AuthInfos {
		_, more := allowed(named.AuthInfo, userFields, path.Child("users").Index(i).Child("user"))
		errs = append(errs, more...)
	}
	return errs
}

// Summary returns the first few errors of a kubeconfig as one, for messages, and how many more there are. It is nil without errors.
func Summary(errs field.ErrorList) error {
	if len(errs) <= summarized {
		return errs.ToAggregate()
	}
	first := errs[:summarized].ToAggregate().Errors()
	return utilerrors.NewAggregate(append(first, fmt.Errorf("and %d more errors", len(errs)-summarized)))
}

// decode returns all of a kubeconfig. It is nil if it is no kubeconfig at all, or beyond the limits.
func decode(data []byte, path *field.Path) (*clientcmdv1.Config, field.ErrorList) {
	if len(data) > maxSize {
		return nil, field.ErrorList{field.TooLong(orRoot(path), "", maxSize)}
	}
	if err := refuseAliases(data); err != nil {
		return nil, field.ErrorList{malformed(path, err.Error())}
	}
	// Strict all the way: what we read and what another parser reads must be the same.
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, field.ErrorList{malformed(path, errNoObject.Error())}
	}
	given := &clientcmdv1.Config{}
	unknown, err := kjson.UnmarshalStrict(asJSON, given)
	if err != nil {
		return nil, field.ErrorList{malformed(path, "is not of the shape of a kubeconfig")}
	}
	if errs := validateEntries(given, path); len(errs) > 0 {
		return nil, errs
	}
	var errs field.ErrorList
	for _, err := range unknown {
		message := err.Error() // it has the path of the field, and no value
		errs = append(errs, field.Forbidden(orRoot(path), strings.ToValidUTF8(message[:min(len(message), maxUnknown)], "")))
	}
	return given, errs
}

var (
	errNoObject = errors.New("must be a YAML or JSON object with each key once")
	errAliases  = errors.New("must not have YAML anchors or aliases")
)

// refuseAliases refuses YAML with anchors or aliases: as JSON, a long value is there once for each alias of it. Nodes are not expanded yet.
func refuseAliases(data []byte) error {
	document := &yamlv3.Node{}
	if err := yamlv3.Unmarshal(data, document); err != nil {
		return errNoObject // the error quotes values
	}
	if hasAliases(document) {
		return errAliases
	}
	return nil
}

func hasAliases(node *yamlv3.Node) bool {
	return node.Kind == yamlv3.AliasNode || node.Anchor != "" || slices.ContainsFunc(node.Content, hasAliases)
}

func validateEntries(config *clientcmdv1.Config, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name string
		size int
	}{{"clusters", len(config.Clusters)}, {"users", len(config.AuthInfos)}, {"contexts", len(config.Contexts)}} {
		if list.size > maxEntries {
			errs = append(errs, field.TooMany(path.Child(list.name), list.size, maxEntries))
		}
	}
	return errs
}

// parse returns the allowed fields of a kubeconfig, in all its clusters, users and contexts.
func parse(data []byte, path *field.Path, blocked func(host string) string) (*clientcmdv1.Config, field.ErrorList) {
	given, errs := decode(data, path)
	if given == nil {
		return nil, errs
	}
	if given.Kind != "" && given.Kind != "Config" {
		errs = append(errs, field.Forbidden(path.Child("kind"), "must be Config"))
	}
	if given.APIVersion != "" && given.APIVersion != "v1" {
		errs = append(errs, field.Forbidden(path.Child("apiVersion"), "must be v1"))
	}
	kept := &clientcmdv1.Config{Kind: "Config", APIVersion: "v1", CurrentContext: given.CurrentContext}
	names := sets.New[string]()
	for i, named := range given.Clusters {
		path := path.Child("clusters").Index(i)
		errs = append(errs, once(names, "cluster/"+named.Name, path)...)
		cluster, more := allowed(named.Cluster, clusterFields, path.Child("cluster"))
		errs = append(append(errs, more...), validateCluster(&cluster, path.Child("cluster"), blocked)...)
		kept.Clusters = append(kept.Clusters, clientcmdv1.NamedCluster{Name: named.Name, Cluster: cluster})
	}
	for i, named := range given.AuthInfos {
		path := path.Child("users").Index(i)
		errs = append(errs, once(names, "user/"+named.Name, path)...)
		user, more := allowed(named.AuthInfo, userFields, path.Child("user"))
		errs = append(append(errs, more...), validateUser(&user, path.Child("user"))...)
		kept.AuthInfos = append(kept.AuthInfos, clientcmdv1.NamedAuthInfo{Name: named.Name, AuthInfo: user})
	}
	for i, named := range given.Contexts {
		path := path.Child("contexts").Index(i)
		errs = append(errs, once(names, "context/"+named.Name, path)...)
		context, more := allowed(named.Context, contextFields, path.Child("context"))
		errs = append(errs, more...)
		kept.Contexts = append(kept.Contexts, clientcmdv1.NamedContext{Name: named.Name, Context: context})
	}
	return kept, errs
}

// malformed is the error for what is no kubeconfig at all.
func malformed(path *field.Path, detail string) *field.Error {
	return field.TypeInvalid(orRoot(path), field.OmitValueType{}, detail)
}

func orRoot(path *field.Path) *field.Path {
	if path == nil {
		return field.NewPath("kubeconfig")
	}
	return path
}

func once(names sets.Set[string], name string, path *field.Path) field.ErrorList {
	if names.Has(name) {
		return field.ErrorList{field.Forbidden(path.Child("name"), "is there twice")}
	}
	names.Insert(name)
	return nil
}

// allowed returns a struct with those fields of another that have one of the names in JSON. Others must not be set.
func allowed[T any](given T, names []string, path *field.Path) (kept T, errs field.ErrorList) {
	from, to := reflect.ValueOf(given), reflect.ValueOf(&kept).Elem()
	for i := range from.NumField() {
		name, _, _ := strings.Cut(from.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case slices.Contains(names, name):
			to.Field(i).Set(from.Field(i))
		case slices.Contains(ignoredFields, name), from.Field(i).IsZero():
		default:
			errs = append(errs, field.Forbidden(path.Child(name), "is not allowed; allowed are "+strings.Join(names, ", ")))
		}
	}
	return kept, errs
}

func validateCluster(cluster *clientcmdv1.Cluster, path *field.Path, blocked func(host string) string) field.ErrorList {
	errs := validateServer(cluster.Server, path.Child("server"), blocked)
	if data := cluster.CertificateAuthorityData; len(data) > 0 {
		path := path.Child("certificate-authority-data")
		if _, err := cert.ParseCertsPEM(data); err != nil {
			errs = append(errs, field.Forbidden(path, "must be certificates in PEM"))
		}
		if cluster.InsecureSkipTLSVerify {
			errs = append(errs, field.Forbidden(path, "excludes insecure-skip-tls-verify"))
		}
	}
	return errs
}

func validateServer(server string, path *field.Path, blocked func(host string) string) field.ErrorList {
	if server == "" {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	parsed, err := url.Parse(server)
	switch {
	case err != nil:
		return field.ErrorList{field.Forbidden(path, "must be a URL")}
	case parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.Opaque != "":
		return field.ErrorList{field.Forbidden(path, "must be a URL with the scheme https and a host")}
	case parsed.User != nil || parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "":
		return field.ErrorList{field.Forbidden(path, "must be a URL with neither user, query nor fragment")}
	}
	return destination.URLOf(server, path, blocked)
}

// validateUser refuses what makes a client fail when it starts.
func validateUser(user *clientcmdv1.AuthInfo, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if user.Token != "" && (user.Username != "" || user.Password != "") {
		errs = append(errs, field.Forbidden(path.Child("token"), "excludes username and password"))
	}
	switch certificate, key := user.ClientCertificateData, user.ClientKeyData; {
	case len(certificate) == 0 && len(key) == 0:
	case len(key) == 0:
		errs = append(errs, field.Required(path.Child("client-key-data"), "must be set with client-certificate-data"))
	case len(certificate) == 0:
		errs = append(errs, field.Required(path.Child("client-certificate-data"), "must be set with client-key-data"))
	default:
		if _, err := tls.X509KeyPair(certificate, key); err != nil {
			errs = append(errs, field.Forbidden(path.Child("client-certificate-data"), "must be a certificate in PEM for client-key-data"))
		}
	}
	return errs
}

// current returns the current context, and what it names.
func current(config *clientcmdv1.Config, path *field.Path) (clusters []clientcmdv1.NamedCluster, users []clientcmdv1.NamedAuthInfo, contexts []clientcmdv1.NamedContext, errs field.ErrorList) {
	at := slices.IndexFunc(config.Contexts, func(c clientcmdv1.NamedContext) bool { return c.Name == config.CurrentContext })
	if at < 0 {
		return nil, nil, nil, field.ErrorList{field.Forbidden(path.Child("current-context"), "must be the name of a context")}
	}
	context := config.Contexts[at].Context
	path = path.Child("contexts").Index(at).Child("context")
	cluster := slices.IndexFunc(config.Clusters, func(c clientcmdv1.NamedCluster) bool { return c.Name == context.Cluster })
	if cluster < 0 || context.Cluster == "" {
		errs = append(errs, field.Forbidden(path.Child("cluster"), "must be the name of a cluster"))
	}
	user := slices.IndexFunc(config.AuthInfos, func(u clientcmdv1.NamedAuthInfo) bool { return u.Name == context.AuthInfo })
	if user < 0 || context.AuthInfo == "" {
		errs = append(errs, field.Forbidden(path.Child("user"), "must be the name of a user"))
	}
	if len(errs) > 0 {
		return nil, nil, nil, errs
	}
	return config.Clusters[cluster : cluster+1], config.AuthInfos[user : user+1], config.Contexts[at : at+1], nil
}

func write(config *clientcmdv1.Config, path *field.Path) ([]byte, field.ErrorList) {
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, field.ErrorList{field.InternalError(path, err)}
	}
	return data, nil
}
