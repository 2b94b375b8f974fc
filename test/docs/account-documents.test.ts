/**
 * Goal: the documents of the page on accounts as code apply as printed, together and again, on a new machine.
 * Method: each YAML block with a `kind` of `sluice apply`, in a folder, with the configuration of the tests.
 */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { configFolder, sluiceHere } from '../cli/session.js'

const PAGE = readFileSync('docs/how-to/manage-accounts-as-code.md', 'utf8')
const DOCUMENTS = [
  ...PAGE.matchAll(/^(?:```yaml|cat > .* <<'EOF')\n(kind: (?:Account|Key)[\s\S]*?)(?:```|EOF)$/gm),
]

void t.test('documents as printed', async (t) => {
  const { good } = configFolder(t)
  const folder = join(dirname(good), 'platform')
  mkdirSync(folder)
  t.equal(DOCUMENTS.length, 3)
  DOCUMENTS.forEach(([, text = ''], at) => writeFileSync(join(folder, `${String(at)}.yaml`), text))
  const apply = () => sluiceHere(['apply', '-f', folder], { env: { SLUICE_CONFIG: good } })
  const first = await apply()
  t.match(first, { status: 0 }, first.err)
  t.match(first.out, /kind: Secret/)
  t.match(first.err, /Applied: 7 created, 0 changed, 0 removed, 0 unchanged/)
  t.match((await apply()).err, /Applied: 0 created, 0 changed, 0 removed, 7 unchanged/)
})

void t.test('a volume of Kubernetes, whose files are links into a hidden folder', async (t) => {
  const { good } = configFolder(t)
  const folder = join(dirname(good), 'accounts')
  mkdirSync(join(folder, '..2026_11_30'), { recursive: true })
  writeFileSync(
    join(folder, '..2026_11_30', 'a.yaml'),
    'kind: Account\nmetadata: { name: a }\nspec: { plan: pro }\n',
  )
  symlinkSync('..2026_11_30', join(folder, '..data'))
  symlinkSync(join('..data', 'a.yaml'), join(folder, 'a.yaml'))
  const { status, out, err } = await sluiceHere(['apply', '-f', folder], { env: { SLUICE_CONFIG: good } })
  t.match({ status, out }, { status: 0, out: /Applied: 1 created/ }, err)
})
