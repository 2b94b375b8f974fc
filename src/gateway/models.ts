/**
 * `GET /v1/models`: the catalogue's models that a route takes, rendered once per generation.
 */
import type { ModelFacts } from '../chat/model.js'
import { factsFor } from '../config/catalogue.js'
import type { Snapshot } from '../config/config.js'
import type { Router } from '../upstreams/router.js'

/** The list and its single entries as JSON text. */
export class ModelList {
  /** The whole list as JSON text. */
  readonly json: string
  private readonly snapshot: Snapshot
  private readonly router: Router

  constructor(snapshot: Snapshot, router: Router) {
    this.snapshot = snapshot
    this.router = router
    const data = snapshot.catalogue.models.filter((model) => router.route(model.id) !== null)
    this.json = JSON.stringify({
      object: 'list',
      data: data.map((model) => entry(model.id, model)),
    })
  }

  /** One model as JSON text: any id that a route takes; null for others. */
  one(id: string): string | null {
    if (this.router.route(id) === null) return null
    return JSON.stringify(entry(id, factsFor(this.snapshot.catalogue, id)))
  }
}

function entry(id: string, facts: ModelFacts): object {
  return { id, object: 'model', created: facts.createdAtSeconds, owned_by: facts.family }
}
