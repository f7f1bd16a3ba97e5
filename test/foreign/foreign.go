// Package foreign is a stand-in for a cloud provider extension that was written for the original. It is written with Kubernetes' libraries and from the
// documented names and values only: it imports nothing of this module, as such an extension does not, so that what it finds is what they find.
//
// It has a chart with its permissions, a webhook for control planes, for Secrets with credentials and for etcd, and controllers of Infrastructure,
// ControlPlane and Worker. Its infrastructure does not exist: it creates the objects of machines, and no machines.
package foreign

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// Name is the name of the extension, and Type that of its infrastructure.
	Name, Type = "provider-acme", "acme"
	// Configuration is the name of its webhook configuration.
	Configuration = "gardener-extension-" + Name
)

//go:embed charts
var charts embed.FS

// Chart is the chart that is installed in seeds.
func Chart() (fs.FS, error) { return fs.Sub(charts, "charts/"+Name) }

// Values are what the process works with.
type Values struct {
	// Config is for the seed, with the permissions of the chart.
	Config *rest.Config
	// Namespace is that of the extension.
	Namespace string
	// Port is where the webhook listens on this machine.
	Port int
}

// Run runs the extension until the context ends.
func Run(ctx context.Context, v Values) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := manager.New(v.Config, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		// What it reads of a control plane is not in a cache, for which it would need to list the Secrets of all namespaces.
		NewClient: func(config *rest.Config, _ client.Options) (client.Client, error) {
			return client.New(config, client.Options{Scheme: scheme})
		},
	})
	if err != nil {
		return err
	}
	if err := errors.Join(
		serve(ctx, mgr, v),
		add(mgr, "Infrastructure", infrastructure), add(mgr, "ControlPlane", controlPlane), add(mgr, "Worker", worker),
	); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// kind returns an object of extensions.gardener.cloud.
func kind(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: name})
	return u
}

// add adds the controller of a kind.
func add(mgr manager.Manager, name string, act func(context.Context, client.Client, *unstructured.Unstructured) error) error {
	return builder.ControllerManagedBy(mgr).For(kind(name)).Complete(&reconciler{client: mgr.GetClient(), kind: name, act: act})
}

// render returns the objects of a chart.
func render(name, namespace string, values map[string]any) (string, error) {
	var files []*loader.BufferedFile
	root := "charts/" + name
	err := fs.WalkDir(charts, root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := charts.ReadFile(path)
		files = append(files, &loader.BufferedFile{Name: path[len(root)+1:], Data: data})
		return err
	})
	if err != nil {
		return "", err
	}
	chart, err := loader.LoadFiles(files)
	if err != nil {
		return "", fmt.Errorf("read chart: %w", err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: name, Namespace: namespace}, nil)
	if err != nil {
		return "", err
	}
	rendered, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	out := ""
	for _, content := range rendered {
		out += "---\n" + content + "\n"
	}
	return out, nil
}
