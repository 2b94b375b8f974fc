/** Writes `deploy/helm/rendered/*.yaml` with Helm: `npm run render:chart`. Not a test. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { render, RENDERED, valueSets } from './chart.js'

mkdirSync(RENDERED, { recursive: true })
for (const set of valueSets()) {
  const path = join(RENDERED, `${set}.yaml`)
  writeFileSync(path, render(set))
  process.stdout.write(`${path}\n`)
}
