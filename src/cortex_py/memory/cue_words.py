"""The vocabulary behind the word cues: what people of the trade say when a note is about this or that.

Endings, case and accents do not matter; two words joined by `_` stand for that pair in a row. A word may stand in
several groups. The words are general; what each group is worth is learned from labelled notes. The commonest of them
in other languages are in `cue_translations`.
"""

from __future__ import annotations

__all__ = ["WORDS"]

WORDS: dict[str, str] = {
    "code": """implement implementation wrote coded coding function method class decorator hook parser helper
        generator iterator callback async await closure struct loop variable argument parameter return signature
        recursion lambda algorithm pointer array list dict map string regex constructor instance object stub_out
        wrapper utility code""",
    "library": """library framework sdk syntax snippet generic overload how_do package import docs_for api_of macro
        lifetime borrow trait interface annotation attribute builtin stdlib operator promise coroutine goroutine""",
    "languages": """python java kotlin swift rust golang javascript typescript ruby php perl scala elixir haskell
        clojure react vue angular svelte django flask fastapi rails laravel spring symfony node deno numpy pandas
        pydantic sqlalchemy hibernate qt unity unreal opengl flutter compose swiftui tokio asyncio lodash""",
    "convention": """convention style naming idiomatic camelcase snake_case indentation indent prefer always never
        consistently rule guideline codebase stick everywhere identifiers abbreviations named_exports""",
    "tooling": """editor ide vscode intellij pycharm vim neovim emacs xcode linter lint eslint prettier ruff black
        mypy pylint clippy compiler compile cmake bazel gradle maven webpack vite esbuild rollup makefile formatter
        toolchain venv virtualenv devcontainer wsl shell zsh bash terminal debugger breakpoint autocomplete codegen
        extension plugin_for git rebase cherry-pick stash hooks pre-commit tsconfig language_server laptop""",
    "dependency": """dependency dependencies upgrade upgraded upgrading bump bumped pin pinned pinning lockfile peer
        upstream fork semver npm pip cargo yarn pnpm poetry composer nuget pypi maintained unmaintained deprecated
        requirements package.json go.mod gemfile transitive wheel renovate dependabot""",
    "fault": """bug buggy crash crashes crashed broken break breaks wrong wrongly error exception fail fails failed
        failing failure hang hangs glitch incorrect incorrectly unexpected garbled misbehaves stuck blank disappears
        gone missing_from twice doesn't_work not_working happens actual expected reproduce reproducible steps_to
        symptom corrupted ignores ignored overlaps flicker flickers jumps throws weird odd since_yesterday only_when
        missing""",
    "repair": """fix fixed fixes fixing bugfix hotfix patch patched repaired solved solves resolves resolved
        corrected corrects reverted revert no_longer restored gone_now works_again clamp guards falls_back""",
    "cause": """cause caused culprit reason turns_out regression bisect bisected reproduced due_to because race
        off-by-one null undefined nil overflow root_cause comes_from came_from tracked_down traced explains why_it
        leads_to instead_of_the stale timezone encoding rounding""",
    "stopgap": """workaround temporary temporarily for_now meanwhile until interim stopgap bypass known_issue
        manually proper_fix ugly""",
    "wish": """want wants wanted wish would_like would_love asked asking request requested idea allow able_to
        feature suggestion nice_to could_we can_we please_add support_for let_people asked_for""",
    "product": """user users customer customers client clients player players member guest subscriber shopper seller
        buyer driver student teacher parent patient visitor host tenant employee plan subscription notification
        profile basket cart checkout voucher coupon booking order photo message chat calendar loyalty refund
        invitation trial feed""",
    "screen": """button screen dialog modal form tooltip toast menu layout icon label dropdown toggle tap swipe
        click hover theme font contrast accessibility a11y sidebar banner wizard placeholder drag drop dark_mode
        zoom keyboard focus navigation navbar header footer card list_view picker carousel colour color wording
        design designer mockup figma responsive tablet phone animation scroll tabs skeleton illustration display""",
    "rollout": """launched launch live available rollout rolled beta pilot shipped released enabled everyone
        everybody flag feature_flag users_can customers_can can_now now_available opt-in early_access""",
    "rule": """must shall should may only unless minimum maximum max min limit acceptance_criteria criteria allowed
        exactly at_most at_least expires within per_day user_story as_a business_rule mandatory optional default
        otherwise""",
    "rearrange": """refactor refactored refactoring refactors extract extracted split splitting move moved
        moving_the merge merged inline inlined decouple decoupled restructure restructured reorganise reorganize
        consolidate consolidated separate separated composition inheritance pull_out pulled_out broken_up unchanged
        identical behaviour_preserved no_change same_behaviour same_result nothing_else pure_rename one_file
        monolithic encapsulate base_class""",
    "cleanup": """cleanup clean_up cleaned_up tidy simplify simplified simplifies dead unused obsolete legacy
        duplicate duplicated duplication copy-paste copied rename renamed renaming debt todo messy spaghetti
        boilerplate unreachable dropped drop removed remove delete deleted rewrite replaced readable nested
        indirection abstraction god_object hack lines_removed commented-out leftovers""",
    "choice": """decide decided decision chose choose choosing chosen adr option options tradeoff trade-off
        instead_of versus vs rejected considered alternatives alternative going_with go_with went_with pros cons
        drawback compared evaluate evaluated rather_than lock-in settled overkill revisit prototype lean""",
    "structure": """architecture architectural monolith monorepo microservice microservices service services
        boundary boundaries layer layers layered domain gateway bounded_context hexagonal port adapter component
        components coupling facade tenant tenants multi-tenancy modular module modules plugin plugins sandbox core
        subsystem owns source_of depend dependencies_between decoupled design_of high-level stateless edge backend
        frontend bff""",
    "contract": """contract contracts endpoint endpoints versioning versioned version rest graphql grpc protobuf
        payload webhook webhooks idempotent idempotency backward compatible compatibility consumer consumers partner
        partners openapi envelope header breaking_change schema_registry public_api anti-corruption""",
    "messages": """queue queues broker kafka rabbitmq nats sqs outbox saga cqrs eventual consistency consistent
        topic producer publish publishes publisher subscribe ordering event events event-driven command commands
        pub/sub bus asynchronous synchronous at-least-once exactly_once replay compensation aggregate dead_letter""",
    "access": """auth authentication authorization authorisation authenticated login logged_in logout session
        sessions role roles permission permissions oauth oidc saml sso mfa 2fa two-factor totp passkey webauthn
        password passwords rbac acl privilege privileges impersonate admin access forbidden denied unauthorized
        identity least_privilege""",
    "weakness": """vulnerability vulnerabilities vulnerable cve xss csrf ssrf injection exploit exploitation
        attacker attackers attack pentest penetration traversal sanitise sanitize sanitiser malicious phishing idor
        owasp threat bounty advisory hardening hardened brute_force severity security secure insecure hijack spoof
        rce escalation untrusted abuse""",
    "secret": """secret secrets credential credentials key keys token tokens rotate rotated rotation vault kms hsm
        leaked leak_of revoke revoked signing .env api_key gitleaks certificate certificates hardcoded plaintext
        private_key ssh""",
    "privacy": """encrypt encrypted encryption gdpr dsgvo rgpd hipaa pci iso soc2 privacy personal_data pii consent
        anonymise anonymize anonymised masked masking audit auditor auditors compliance retention erasure legal tls
        cookie_banner tamper pseudonymise sensitive confidential data_processing""",
    "tables": """table tables column columns constraint foreign_key foreign_keys primary_key composite nullable
        not_null jsonb enum varchar numeric timestamp schema unique row rows bigint partition partitioned postgres
        mysql mongodb oracle sqlite database document_shape normalise normalize view data_model mapping_for
        join_table""",
    "moving": """migration migrations migrate migrated migrating backfill backfilled alembic flyway liquibase
        mapping import imported importing reindexed reindex dump cut-over cutover dual_write legacy_data checksums
        existing_rows converted""",
    "flow": """etl elt dbt airflow dag dagster spark flink debezium cdc ingest ingested ingestion parquet warehouse
        lake snowflake bigquery redshift batch batches csv xml stream streaming load loads loaded nightly feed feeds
        aggregate aggregates upsert merge_on transform transforms extract_from raw staging_tables partitions file""",
    "quality": """duplicates missing invalid validate validated dedupe deduplicate deduplication reconcile
        reconciliation outlier outliers inconsistent mismatch cleaned orphaned rejects nulls placeholder_values
        units whitespace records data_quality spelling merge_them""",
    "insight": """report reports reporting cohort churn conversion funnel kpi dashboard model predict prediction
        accuracy training trained dataset data_set forecast revenue quarter analytics analysis significance segment
        count average median query percentage retention_curve a/b metric labelled classifier features_are auc f1
        heat_map metabase tableau""",
    "deploy": """deploy deploys deployed deploying deployment rollback roll_back rolled_back rolling canary helm
        staging production prod release releases blue/green installer ship firmware environment environments
        zero_downtime systemd restart phased promote""",
    "pipeline": """ci cd ci/cd pipeline pipelines runner runners github_actions gitlab jenkins circleci azure
        workflow workflows job jobs artifact artifacts artefacts build builds stage stages tag tags matrix registry""",
    "cloud": """aws gcp ec2 s3 rds lambda terraform pulumi kubernetes k8s pod pods node nodes cluster docker
        dockerfile compose container containers image images vm vms volume ansible gpu disk replica failover
        autoscaling spot instance instances backup backups host hosting bucket ram_limit provision provisioned
        cpu_limit namespace kernel hetzner proxmox cost costs bill server""",
    "network": """dns proxy nginx traefik load_balancer balancer vpc subnet firewall cdn ingress vpn dhcp cloudflare
        route routes routing peering traffic gateway timeout timeouts switch ip ssl certificate lookup domain port
        ports http/2 keep-alive nat bastion latency_between router wifi network""",
    "watch": """alert alerts alerting pager paged pagerduty grafana prometheus log logs logging loki metrics
        incident incidents outage on-call oncall uptime sentry datadog downtime trace traces tracing opentelemetry
        postmortem post-mortem post_mortem probe probes health health_check healthcheck threshold""",
    "tests": """test tests tested testing unit pytest jest vitest junit rspec xunit assert asserts assertion
        coverage suite spec specs tdd mutation fuzz fuzzed fuzzing hypothesis green passes pass regression_test
        integration_test test_case test_cases parametrised parametrized property-based""",
    "browser_tests": """playwright cypress selenium webdriver puppeteer e2e end-to-end smoke emulator simulator
        detox appium maestro test_bench""",
    "flaky": """flaky flake flakiness intermittent intermittently rerun quarantine nondeterministic sometimes
        unstable now_and random_order fails_on in_a_row sporadic""",
    "fixtures": """fixture fixtures mock mocks mocked mocking stub stubs stubbed factory factories seed seeds
        snapshot snapshots fake fakes faker recorded vcr wiremock testcontainers golden golden_files test_data""",
    "by_hand": """qa uat tester testers checklist exploratory by_hand sign-off signed_off acceptance acceptance_test
        manual_test manually usability participants test_plan release_candidate real_devices""",
    "docs": """docs doc documentation documented documenting document documents readme guide guides tutorial wiki
        manual docstring docstrings javadoc jsdoc comment comments changelog release_notes upgrade_notes reference
        glossary example examples chapter section paragraph runbook how-to howto swagger redoc explain explains
        explained explaining faq announcement page pages quickstart getting_started onboarding step_by screenshots
        typo typos cheat_sheet adr write_down blog diagram describe describes description descriptions""",
    "speed": """slow slower slowest slowly fast faster quick quickly quicker latency speed milliseconds seconds lag
        lags freezes takes took loading bottleneck optimise optimize optimised optimized optimization optimisation
        round_trip lazy lazily fps instant response_time load_time start-up startup cold_start n+1 index_on
        full_scan""",
    "memory": """memory leak leaks leaking heap rss oom gc garbage allocation allocations allocate ram bundle
        footprint buffer buffers consumption eats shrank kilobytes""",
    "load": """throughput rps qps requests_per concurrency concurrent concurrently parallel parallelised contention
        scales scaling scale scaled backlog load_test saturate saturated pool per_second per_minute back-pressure
        backpressure cores threads batching bulk peak simultaneous handle_more""",
    "measure": """profile profiler profiled profiling benchmark benchmarks benchmarked flame_graph py-spy cprofile
        perf budget budgets measure measured measurement explain_analyze cpu micro-benchmark baseline lighthouse
        devtools p95 mean""",
    "cache": """cache cached caches caching hit_rate ttl memoise memoize memoised memoized etag stale warm cold
        redis invalidate invalidation invalidated materialised materialized cdn_cache""",
    "plan": """sprint sprints deadline milestone milestones roadmap estimate estimates estimated priority priorities
        backlog epic story_points points goal goals scope schedule budget risk risks plan planned planning postpone
        capacity velocity due phase tender launch_date timeline hiring""",
    "state": """status done finished complete completed blocked blocker waiting next_steps next_step in_progress
        in_review tomorrow today remaining still_open open closed pending ongoing started_on so_far on_track update
        left_to halfway""",
    "meeting": """meeting meetings call calls agreed agree agreement retro retrospective stand-up standup kickoff
        stakeholder stakeholders minutes talked discussed participants agenda action_items steering workshop
        customer_meeting demo negotiated told summary_of""",
    "way_of_working": """review reviews reviewer reviewers approval approvals approve approved pr prs pull_request
        pull_requests branch branches squash triage rotation process handover template workflow kanban scrum wip
        definition_of ticket tickets issue issues label labels policy from_now etiquette""",
    "who": """owner owns ownership responsible team teams contact ask who assigned assign takes_over backup lead
        manager maintainer colleague product_owner escalation escalate covers vacation leave on_leave hand_over
        department""",
    "courtesy": """thanks thank hello hi hey morning evening sorry ok okay yes no yep nope welcome great cool lol
        haha please bye cheers sure nice understood noted perfect awesome glad good_morning see_you no_problem
        got_it of_course""",
    "manner": """answer answers reply replies respond language english german short shorter brief concise bullet
        emoji emojis call_me prefer tone remember spelling jargon apologise step-by-step explain_it my_name
        recommend""",
    "life": """birthday family wife husband partner daughter son kids child children baby mother father sister
        brother parents cat dog dogs holiday holidays vacation weekend music guitar piano book books film movie
        sport hiking running cycling cooking married hobby coffee lunch dinner vegetarian flat apartment live_in
        born studied doctor hospital""",
    "curiosity": """what_does what_is what's_the difference meaning mean means origin history invented inventor
        curious curiosity generally law theory known_as named stands_for stand_for acronym concept definition famous
        century recommend_a who_invented who_wrote""",
    "self": """I I'm my me mine""",
    "you": """you your yours you're""",
    "calendar": """Monday Tuesday Wednesday Thursday Friday Saturday Sunday week weeks month months January February
        March April June July August September October November December""",
}
