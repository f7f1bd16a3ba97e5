{{/* garden is not empty if the chart is for the garden itself, in its runtime cluster: gardener-operator says so, with a string. */}}
{{- define "garden" -}}
{{- with (.Values.gardener).runtimeCluster }}{{ if eq (toString .enabled) "true" }}true{{ end }}{{ end }}
{{- end -}}
