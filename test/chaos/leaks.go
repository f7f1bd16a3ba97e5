package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/test/snapshot"
)

// surroundings are the objects of the garden and its seeds before any shoot was created.
type surroundings struct {
	clusters []*surrounding
	// without are the namespaces of the control planes of other shoots.
	without []string
}

// surrounding are the objects of one cluster.
type surrounding struct {
	config  *rest.Config
	objects []string
}

// observe lists the objects of the garden, of its runtime cluster, which is the first seed, and of further clusters. Shoots whose names start with
// prefix must not exist.
func observe(ctx context.Context, l *landscape.Landscape, garden client.Client, prefix string, further ...string) (*surroundings, error) {
	shoots := &corev1beta1.ShootList{}
	if err := garden.List(ctx, shoots); err != nil {
		return nil, err
	}
	s := &surroundings{}
	for _, shoot := range shoots.Items {
		if strings.HasPrefix(shoot.Name, prefix) {
			return nil, fmt.Errorf("shoot %q of an earlier run still exists: delete it, and run this again when it is gone", client.ObjectKeyFromObject(&shoot))
		}
		s.without = append(s.without, shoot.Status.TechnicalID)
	}
	for _, name := range append([]string{landscape.VirtualGarden, landscape.RuntimeCluster}, further...) {
		config, err := clientcmd.BuildConfigFromFlags("", l.KubeconfigFile(name))
		if err != nil {
			return nil, err
		}
		taken, err := snapshot.Take(ctx, config, s.without...)
		if err != nil {
			return nil, err
		}
		s.clusters = append(s.clusters, &surrounding{config, taken})
	}
	return s, nil
}

// leaks returns an error if there are more or fewer objects than before. It waits for objects whose deletion takes a moment longer.
func (s *surroundings) leaks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	var errs []error
	for _, cluster := range s.clusters {
		errs = append(errs, snapshot.Await(ctx, cluster.config, cluster.objects, s.without...))
	}
	return errors.Join(errs...)
}
