package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// restorationLimit is the end of a restoration.
const restorationLimit = 15 * time.Minute

// restoration is the loss of the volumes of a garden's etcds.
type restoration struct {
	clients

	// writes is how long objects are written before.
	writes time.Duration
}

// run writes into the garden, deletes the volumes of its etcds, and prints which of the writes are lost and for how long the API does not respond.
func (r restoration) run(ctx context.Context) error {
	if err := r.deleteJournal(ctx); err != nil { // of a run that was stopped: its objects would count as restored
		return err
	}
	j := &journal{}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var written sync.WaitGroup
	written.Go(func() { j.run(writing, func(context.Context) (client.WithWatch, error) { return r.garden, nil }) })
	before, ended := context.WithTimeout(ctx, r.writes)
	<-before.Done()
	ended()
	if err := ctx.Err(); err != nil {
		return err
	}

	j.reset(time.Now())
	gone := time.Now()
	if err := r.deleteVolumes(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, restorationLimit)
	defer cancel()
	if err := r.await(ctx, gone); err != nil {
		return err
	}
	ready := time.Since(gone)
	stop()
	written.Wait()
	lost, err := j.lost(ctx, r.garden)
	if err != nil {
		return err
	}
	outage := j.outage(time.Now())
	fmt.Printf("API not reached for %s, healthy after %s, %d of %d acknowledged writes lost\n", outage.Round(time.Second), ready.Round(time.Second), len(lost), len(j.written))
	if len(lost) > 0 {
		fmt.Printf("lost are writes of %s, the first %s before the loss of the volumes\n",
			lost[len(lost)-1].at.Sub(lost[0].at).Round(time.Second), gone.Sub(lost[0].at).Round(time.Second))
	}
	return r.deleteJournal(ctx)
}

func (r restoration) deleteJournal(ctx context.Context) error {
	return r.garden.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{runLabel: "journal"})
}

// etcds are the labels of the pods and volumes of the garden's etcds.
var etcds = client.MatchingLabels{"app.kubernetes.io/managed-by": "etcd-druid"}

// deleteVolumes deletes the volumes with all members at once, which have no time to save anything.
func (r restoration) deleteVolumes(ctx context.Context) error {
	garden := client.InNamespace(constants.GardenNamespace)
	volumes := &corev1.PersistentVolumeClaimList{}
	if err := r.seed.List(ctx, volumes, garden, etcds); err != nil {
		return err
	}
	if len(volumes.Items) == 0 {
		return errors.New("the etcds of the garden have no volumes")
	}
	for i := range volumes.Items {
		if err := r.seed.Delete(ctx, &volumes.Items[i]); err != nil {
			return err
		}
	}
	return r.seed.DeleteAllOf(ctx, &corev1.Pod{}, garden, etcds, client.GracePeriodSeconds(0))
}

// await waits until all etcds have volumes that are newer than a time and are ready, and the API takes writes.
func (r restoration) await(ctx context.Context, since time.Time) error {
	if err := kube.Await(ctx, r.seed, &corev1.PersistentVolumeClaimList{}, func(volumes []*corev1.PersistentVolumeClaim) error {
		for _, volume := range volumes {
			if volume.CreationTimestamp.Time.Before(since.Truncate(time.Second)) || volume.Status.Phase != corev1.ClaimBound {
				return fmt.Errorf("the volume of %s is not replaced", volume.Name)
			}
		}
		return nil
	}, nil, client.InNamespace(constants.GardenNamespace), etcds); err != nil {
		return err
	}
	if err := kube.Await(ctx, r.seed, &druidv1alpha1.EtcdList{}, func(all []*druidv1alpha1.Etcd) error {
		for _, etcd := range all {
			if etcd.Status.Ready == nil || !*etcd.Status.Ready {
				return fmt.Errorf("Etcd %s is not ready", etcd.Name)
			}
		}
		return nil
	}, nil, client.InNamespace(constants.GardenNamespace)); err != nil {
		return err
	}
	return kube.Await(ctx, r.garden, &corev1.ConfigMapList{}, func(all []*corev1.ConfigMap) error {
		for _, object := range all {
			if object.CreationTimestamp.After(since) {
				return nil
			}
		}
		return errors.New("nothing is written yet")
	}, nil, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{runLabel: "journal"})
}
