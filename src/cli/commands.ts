/** The commands of the program `sluice`. */
import type { CommandUnknownOpts } from '@commander-js/extra-typings'

/** Commands by name, loaded on demand, so that `sluice keys` does not load the gateway. */
export const COMMANDS: Record<string, () => Promise<CommandUnknownOpts>> = {
  accounts: async () => (await import('./accounts.js')).command(),
  'admin-tokens': async () => (await import('./admin-tokens.js')).command(),
  apply: async () => (await import('./apply/apply.js')).command(),
  audit: async () => (await import('./audit.js')).command(),
  backup: async () => (await import('./backup.js')).command(),
  cache: async () => (await import('./cache.js')).command(),
  cassettes: async () => (await import('./cassettes.js')).command(),
  check: async () => (await import('./check.js')).command(),
  connect: async () => (await import('./connect/connect.js')).command(),
  demo: async () => (await import('./demo.js')).command(),
  emulate: async () => (await import('./emulate.js')).command(),
  explain: async () => (await import('./explain/explain.js')).command(),
  export: async () => (await import('./export.js')).command(),
  generations: async () => (await import('./generations.js')).command(),
  identity: async () => (await import('./identity.js')).command(),
  import: async () => (await import('./import/import.js')).command(),
  keys: async () => (await import('./keys.js')).command(),
  members: async () => (await import('./members.js')).command(),
  models: async () => (await import('./models.js')).command(),
  plan: async () => (await import('./plan/plan.js')).command(),
  recordings: async () => (await import('./recordings.js')).command(),
  rehearse: async () => (await import('./rehearse/rehearse.js')).command(),
  replay: async () => (await import('./replay.js')).command(),
  restart: async () => (await import('./restart.js')).command(),
  serve: async () => (await import('./serve.js')).command(),
  store: async () => (await import('./store.js')).command(),
  usage: async () => (await import('./usage.js')).command(),
  users: async () => (await import('./users.js')).command(),
}
