{{- define "gatehouse.name" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains "gatehouse" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-gatehouse" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "gatehouse.selector" -}}
app.kubernetes.io/name: gatehouse
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gatehouse.labels" -}}
{{ include "gatehouse.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gatehouse.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Whether several gateways may run at once. */}}
{{- define "gatehouse.isTeam" -}}{{ if .Values.database.existingSecret }}true{{ end }}{{- end }}

{{/* gatehouse.yaml: what is given, over what this chart needs. */}}
{{- define "gatehouse.config" -}}
{{- $needed := dict "metrics" (dict "host" "0.0.0.0" "port" (.Values.metrics.port | int) "require_token" "never") }}
{{- $needed = set $needed "server" (dict "port" 8787) }}
{{- if and (include "gatehouse.isTeam" .) .Values.migration.enabled }}
{{- $needed = set $needed "store" (dict "migrate" "manual") }}
{{- end }}
{{- mergeOverwrite (deepCopy .Values.config) $needed | toYaml }}
{{- end }}

{{/* The parts that a running gateway does not read again, or all of it. */}}
{{- define "gatehouse.restartConfig" -}}
{{- $config := include "gatehouse.config" . | fromYaml }}
{{- if eq .Values.configReload.mode "watch" }}
{{- $rows := pick (default dict (get $config "request_log")) "sinks" "reader" }}
{{- $config = pick $config "server" "admin" "store" "outputs" "limits" "valkey" "cache" "telemetry" "metrics" "sandbox" "data_dir" }}
{{- $config = set $config "request_log" $rows }}
{{- end }}
{{- toJson $config }}
{{- end }}

{{- define "gatehouse.shutdownSeconds" -}}
{{- $server := default dict (get .Values.config "server") }}
{{- if hasKey $server "shutdown_seconds" }}{{ get $server "shutdown_seconds" | int }}{{ else }}25{{ end }}
{{- end }}

{{- define "gatehouse.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "gatehouse.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "gatehouse.env" -}}
- { name: GATEHOUSE_HOST, value: 0.0.0.0 }
- { name: GATEHOUSE_PORT, value: "8787" }
- { name: GATEHOUSE_DATA_DIR, value: /data }
{{- if .Values.database.existingSecret }}
- name: GATEHOUSE_DATABASE_URL
  valueFrom:
    secretKeyRef: { name: {{ .Values.database.existingSecret | quote }}, key: {{ .Values.database.key | quote }} }
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
