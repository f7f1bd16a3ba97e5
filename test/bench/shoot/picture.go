package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/test/bench/shoot/timeline"
)

// draw draws the tasks of a creation, from the log of the gardenlet.
func (b *bench) draw(ctx context.Context, c *creation) error {
	timings, err := b.timings(ctx, c)
	if err != nil {
		return fmt.Errorf("draw %s: %w", b.picture, err)
	}
	picture, err := chart(c, timings)
	if err != nil {
		return fmt.Errorf("draw %s: %w", b.picture, err)
	}
	var out bytes.Buffer
	if err := picture.SVG(&out); err != nil {
		return fmt.Errorf("draw %s: %w", b.picture, err)
	}
	if err := os.MkdirAll(filepath.Dir(b.picture), 0o755); err != nil {
		return err
	}
	return os.WriteFile(b.picture, out.Bytes(), 0o644)
}

// timings are the timings that the gardenlets have logged since the creation of a shoot.
func (b *bench) timings(ctx context.Context, c *creation) ([]flow.LoggedTiming, error) {
	config, err := clientcmd.BuildConfigFromFlags("", b.l.KubeconfigFile(landscape.RuntimeCluster))
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	pods := clientset.CoreV1().Pods(constants.GardenNamespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	since := metav1.NewTime(c.begin.Add(-time.Second)) // the API counts in whole seconds
	var all []flow.LoggedTiming
	for _, pod := range list.Items {
		if !strings.HasPrefix(pod.Name, "gardenlet-") {
			continue
		}
		log, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{SinceTime: &since}).Stream(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the log of pod %q: %w", pod.Name, err)
		}
		found, err := flow.ReadTimings(log)
		if err := errors.Join(err, log.Close()); err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// chart draws the run that created a shoot: the first one without a failed task. Tasks that earlier runs have completed take little time in
// it.
func chart(c *creation, timings []flow.LoggedTiming) (timeline.Chart, error) {
	picture := timeline.Chart{Title: "Creation of a shoot: not healthy yet", Begin: c.begin}
	if c.healthy > 0 {
		picture.Title = "Creation of a shoot: healthy after " + seconds(c.healthy.Seconds())
	}
	var runs [][]flow.Timing
	last := ""
	for _, t := range timings {
		if t.Namespace != c.shoot.Namespace || t.Name != c.shoot.Name || t.Start.Before(c.begin) {
			continue
		}
		if t.ReconcileID != last {
			last = t.ReconcileID
			runs = append(runs, nil)
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], t.Timing)
	}
	if len(runs) == 0 {
		return picture, fmt.Errorf("the log of the gardenlet has no tasks of shoot %q: it must be in the format json, at the level info or debug", c.key())
	}
	made := slices.IndexFunc(runs, func(run []flow.Timing) bool {
		return !slices.ContainsFunc(run, func(t flow.Timing) bool { return t.Err != nil })
	})
	if made < 0 {
		made = len(runs) - 1
	}
	picture.Tasks = runs[made]
	if made > 0 {
		picture.Title += fmt.Sprintf(" (run %d)", made+1)
	}
	for _, mark := range []struct {
		text string
		took time.Duration
	}{
		{"the API answers", c.answer}, {"the first node is ready", c.node}, {"healthy", c.healthy},
	} {
		if mark.took > 0 {
			picture.Marks = append(picture.Marks, timeline.Mark{Text: mark.text, At: c.begin.Add(mark.took)})
		}
	}
	return picture, nil
}
