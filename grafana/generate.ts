/**
 * Writes the boards, `grafana/dashboards/*.json` and `grafana/archive/*.json`, and the Helm chart's copy of
 * the alerts, because Helm reads no file outside of a chart: `npm run generate`. Tests compare the files with
 * their sources.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { archiveBoardFiles } from './archive-boards.js'
import { boardFiles } from './boards/index.js'

for (const { path, text } of [...boardFiles(), ...archiveBoardFiles()]) {
  writeFileSync(path, text)
  process.stdout.write(`${path}\n`)
}

const copy = 'deploy/helm/sluice/files/alerts.yaml'
writeFileSync(
  copy,
  `# A copy of grafana/alerts.yaml by npm run generate; do not edit.\n${readFileSync('grafana/alerts.yaml', 'utf8')}`,
)
process.stdout.write(`${copy}\n`)
