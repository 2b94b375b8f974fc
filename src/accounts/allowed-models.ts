/** Which models a key may use: its list of ids and of prefixes such as `gpt-*`. */
import { GatewayError } from '../errors.js'

/** Throws `forbidden` if the key's list of models does not include the model, which is at `param`. */
export function assertModelAllowed(
  { models }: { readonly models: readonly string[] | null },
  model: string,
  param = 'model',
): void {
  if (models === null || namesModel(models, model)) return
  throw new GatewayError(
    'forbidden',
    `This API key is not allowed to use the model '${shortModelName(model)}'.`,
    { param, code: 'model_not_found' },
  )
}

/** Whether one of the patterns (`ApiKey.models`) matches the model. */
export function namesModel(patterns: readonly string[], model: string): boolean {
  for (const pattern of patterns) {
    if (pattern === model) return true
    if (pattern.endsWith('*') && model.startsWith(pattern.slice(0, -1))) return true
  }
  return false
}

/**
 * The rule as a function for many models: its time does not depend on the number of patterns. Null allows all
 * models.
 */
export function allowedModelsFilter(patterns: readonly string[] | null): (model: string) => boolean {
  if (patterns === null) return () => true
  const exact = new Set(patterns)
  const prefixes = new Set(
    patterns.filter((pattern) => pattern.endsWith('*')).map((pattern) => pattern.slice(0, -1)),
  )
  return (model) => {
    if (exact.has(model)) return true
    for (let length = 0; length <= model.length; length += 1) {
      if (prefixes.has(model.slice(0, length))) return true
    }
    return false
  }
}

/** The name in an error message: its first 100 characters. */
export function shortModelName(model: string): string {
  return model.length > 100 ? `${model.slice(0, 100)}…` : model
}
