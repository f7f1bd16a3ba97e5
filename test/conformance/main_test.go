package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestRenameContext(t *testing.T) {
	external := &clientcmdapi.Context{Cluster: "external", AuthInfo: "me"}
	config := &clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"external": {}, "internal": {}},
		Contexts:       map[string]*clientcmdapi.Context{"external": external, "internal": {Cluster: "internal"}},
		CurrentContext: "external",
	}
	renameContext(config)
	if config.Clusters[config.CurrentContext] != nil {
		t.Errorf("a cluster has the name of the current context: %q", config.CurrentContext)
	}
	if diff := cmp.Diff(map[string]*clientcmdapi.Context{config.CurrentContext: external}, config.Contexts); diff != "" {
		t.Errorf("contexts (-want +got):\n%s", diff)
	}
}
