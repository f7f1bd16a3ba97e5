package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runWrites writes objects into a cluster, one after another, and prints the longest time without a write. In the end it checks that all
// acknowledged writes are kept. The cluster is upgraded or killed meanwhile, by other means.
func runWrites(ctx context.Context, flags *flag.FlagSet, args []string) error {
	file := flags.String("kubeconfig", "", "of the cluster")
	duration := flags.Duration("duration", time.Minute, "how long to write")
	pause := flags.Duration("pause", 100*time.Millisecond, "the time between two writes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c, err := writer(*file)
	if err != nil {
		return err
	}
	writing, stop := context.WithTimeout(ctx, *duration)
	defer stop()
	return writes(ctx, writing, c, *pause)
}

// answerTimeout is how long the answer to a write may take.
const answerTimeout = 10 * time.Second

// writer returns a client without limits.
func writer(kubeconfig string) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return client.New(config, client.Options{})
}

// writes writes until the second context ends, prints what came of it, and deletes what was written.
func writes(ctx, writing context.Context, c client.Client, pause time.Duration) error {
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	acknowledged, outage, failures := write(writing, c, run, pause)
	lost, err := missing(ctx, c, acknowledged)
	fmt.Printf("%-32s %d\n%-32s %d\n%-32s %s\n%-32s %d\n", "writes acknowledged", len(acknowledged), "writes failed", failures,
		"longest time without a write", outage.Round(time.Millisecond), "acknowledged writes lost", len(lost))
	if len(lost) > 0 {
		err = errors.Join(err, fmt.Errorf("lost: %v", lost))
	}
	return errors.Join(err, c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{runLabel: run}))
}

// runLabel is the label of the objects of a run.
const runLabel = "chaos"

// write writes until the context ends. It returns the names of acknowledged objects, and the longest time between two acknowledgements.
func write(ctx context.Context, c client.Client, run string, pause time.Duration) (acknowledged []string, outage time.Duration, failures int) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	begin, said := time.Now(), ""
	last := begin
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("write-%s-%d", run, i)
		creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		err := c.Create(creating, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{runLabel: run},
		}})
		cancel()
		if err != nil {
			failures++
			if err.Error() != said { // an outage has the same error many times
				said = err.Error()
				fmt.Printf("%8s %v\n", time.Since(begin).Round(time.Millisecond), err)
			}
		} else {
			acknowledged = append(acknowledged, name)
			outage, last = max(outage, time.Since(last)), time.Now()
		}
		<-ticker.C
	}
	return acknowledged, max(outage, time.Since(last)), failures
}

// missing returns the names that are not in the cluster.
func missing(ctx context.Context, c client.Client, names []string) (lost []string, err error) {
	for _, name := range names {
		err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			lost = append(lost, name)
		} else if err != nil {
			return lost, err
		}
	}
	return lost, nil
}
