// Package nodeproblemdetector is the node-problem-detector of a node: it reads the log of the kernel, and how often systemd starts the kubelet and
// containerd, and reports problems as conditions of the Node, as events and as metrics.
//
// It reads no objects but its Node, once, and writes conditions and events of this Node. Conditions whose source cannot be read are missing: the
// machine-controller-manager of the original replaces machines not only for a condition that is True, but also for one that is Unknown. Source:
// nodes-and-autoscaling.md 4.2.
package nodeproblemdetector
