{{/* The name of everything: the release, with `reaperd` in it. */}}
{{- define "reaperd.name" -}}
{{- if contains "reaperd" .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-reaperd" .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name label is always the same: it becomes the job that the rules speak of. */}}
{{- define "reaperd.selector" -}}
app.kubernetes.io/name: reaperd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "reaperd.labels" -}}
{{ include "reaperd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "reaperd.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* What the configuration and the pod have to agree on. */}}
{{- define "reaperd.check" -}}
{{- $config := fromToml .Values.config -}}
{{- if hasKey $config "Error" -}}
{{- fail (printf "config is no TOML: %s" $config.Error) -}}
{{- end -}}
{{- $listen := dig "http" "listen" "127.0.0.1:9745" $config -}}
{{- if and (not .Values.schedule) (not (has $listen (list "0.0.0.0:9745" "[::]:9745"))) -}}
{{- fail (printf "config: http.listen is %q, and the probes come from outside of the pod to port 9745: set it to \"0.0.0.0:9745\"" $listen) -}}
{{- end -}}
{{- if ne (get $config "state_dir" | default "/var/lib/reaperd") "/var/lib/reaperd" -}}
{{- fail "config: state_dir must be \"/var/lib/reaperd\": the volume of the ledger is there" -}}
{{- end -}}
{{- if not (hasPrefix (printf "%s/" .Values.registry.mountPath) (dig "registry" "path" "" $config)) -}}
{{- fail (printf "config: registry.path must lie in %s: registry.mountPath is where its volume is" .Values.registry.mountPath) -}}
{{- end -}}
{{- end -}}
