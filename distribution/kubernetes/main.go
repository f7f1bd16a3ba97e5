// Command kubernetes is every Kubernetes component in one binary. It runs the component named by the file name it was
// started under (argv[0]), or by its first argument: "kubernetes kubelet --version" and a link called "kubelet" are the
// same. All components of a machine then share one file in the page cache, and all images one layer. In an image it runs only those that
// the image is for, as programsFile says.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJob time zones work without zone files in the image.

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl accepts every kind of credentials.
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubeadmerrors "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// components run until they end the process themselves.
var components = map[string]func(){
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kube-proxy":              func() { run(proxy.NewProxyCommand()) },
	"kubelet":                 func() { run(kubelet.NewKubeletCommand(context.Background())) },
	"kubeadm":                 func() { kubeadmerrors.HandleError(kubeadm.Run()) },
	"kubectl":                 runKubectl,
}

func main() {
	if name := filepath.Base(os.Args[0]); components[name] != nil {
		start(name)
		return
	}
	if len(os.Args) > 1 && components[os.Args[1]] != nil {
		os.Args = os.Args[1:]
		start(os.Args[0])
		return
	}
	fmt.Fprintf(os.Stderr, "usage: kubernetes COMPONENT [FLAGS], where COMPONENT is one of: %s\n",
		strings.Join(slices.Sorted(maps.Keys(components)), ", "))
	os.Exit(2)
}

func start(component string) {
	if err := permitted(component); err != nil {
		fmt.Fprintf(os.Stderr, "kubernetes: %v\n", err)
		os.Exit(2)
	}
	components[component]()
}

func run(command *cobra.Command) { os.Exit(cli.Run(command)) }

func runKubectl() {
	// kubectl wants its verbosity before it builds its command tree, because plugins and .kuberc are handled there.
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		kubectlutil.CheckErr(err)
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
