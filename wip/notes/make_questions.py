"""Writes notes.jsonl from the questions below and checks that their lines are there. Run: python make_questions.py [--show]"""
import json, sys
from pathlib import Path
HERE = Path(__file__).parent
T = "TraderPlus Wiki 87656145052a4edc9a23dc151034e7ea/"
FAQ = T + "Frequently Asked Questions ca215f87d6da4deb99c2a32b6d7a3391.md"
GEN = T + "TraderPlusGeneralConfig json eef7f811207c48aca418cffd41121735.md"
PRICE = T + "TraderPlusPriceConfig json bafb5261d89349f1ac68f82e53eb3b46.md"
GARAGE = T + "TraderPlusGarageConfig json 69e491d7eeb644049c1adc3e30b1030d.md"
IDS = T + "TraderPlusIDsConfig json f208ea4128d149b6a1b7b4fca27f871b.md"
INS = T + "TraderPlusInsuranceConfig json 2a8e56b87f5943ecae07333669df3394.md"
ZONE = T + "TraderPlusSafeZoneConfig json e6d485d37c66485287111890f9c35b64.md"
VEH = T + "TraderPlusVehiclesConfig json 68e0a4dabc4c40459d27eae2f4a6c776.md"
BANK = T + "TraderPlusBankingConfig json 6d6e28a44e8940bba0d413665f8fdfbc.md"
INST = T + "Installation process 904660a9ae9444bfa0919971d947eca5.md"
JONES = T + "Dr Jones Trader Conversion b35b8c7ac2dc4e42a5f98e3252eb6787.md"
LOGS = T + "TraderPlusLogs 9b44cd5bb2ab47899ca51f5f4fad37ae.md"
CONTRIB = T + "Contributors 2779667102d7415c992a0e94b704adb5/"
QUESTIONS = {
 "obsidian-tasks": [
  ("howto", "I just added the plugin, what do I have to do to get Tasks going in my vault?", "Getting Started/Installation.md", [[10, 17]]),
  ("howto", "how to make a QuickAdd capture that opens the new-task dialog, step by step", "Other Plugins/QuickAdd.md", [[35, 35], [39, 42], [48, 49]]),
  ("howto", "How do I get my own task format onto a keyboard shortcut through QuickAdd?", "Other Plugins/QuickAdd.md", [[99, 102]]),
  ("howto", "I want a few extra checkbox states that cycle from one to the next. How do I add them in the settings?", "How To/Set up custom statuses.md", [[60, 62], [64, 67], [69, 69], [71, 71], [73, 74]]),
  ("howto", "What should I check before I complain about something being broken in the plugin?", "Support and Help/Report a Bug.md", [[30, 48]]),
  ("howto", "Tasks misbehaves together with a different plugin: what do I need to try out before I report that?", "Support and Help/Report a Bug.md", [[192, 199]]),
  ("howto", "how do I send the developers a small vault that shows the problem", "Support and Help/Report a Bug.md", [[203, 209]]),
  ("howto", "My old singular frontmatter names (tag, alias, cssclass) are no longer recognised since the Obsidian update. How can I convert the whole vault at once?", "Support and Help/Missing tags, aliases and cssclasses in some Obsidian 1.9.x versions.md", [[116, 118], [123, 125]]),
  ("howto", "Some to-dos inside titled callouts are not found; how do I make Obsidian rebuild its cache?", "Support and Help/Missing tasks in callouts with some Obsidian 1.6.x versions.md", [[63, 63], [67, 70]]),
  ("howto", "How can I make one to-do wait for another one while typing, without opening a dialog?", "Getting Started/Task Dependencies.md", [[150, 156]]),
  ("howto", "ways to give a task a priority without inserting the emoji by hand", "Getting Started/Priority.md", [[32, 37]]),
  ("howto", "Where and how do I define a named set of query lines that I can reuse in many notes?", "Queries/Presets.md", [[25, 29]]),
  ("howto", "How do I snooze an overdue item from the search results?", "Editing/Postponing.md", [[28, 32], [39, 42]]),
  ("fact", "If a task has several dates, which one does the snooze button change?", "Editing/Postponing.md", [[51, 57]]),
  ("fact", "Why is the ⏩ button missing on one of my tasks?", "Editing/Postponing.md", [[82, 87]]),
  ("fact", "Which characters may I use in the identifier of a task that others depend on?", "Getting Started/Task Dependencies.md", [[65, 71]]),
  ("fact", "Under which conditions does a note's file name set the scheduled date of its tasks?", "Getting Started/Use Filename as Default Date.md", [[38, 45]]),
  ("fact", "What can the plugin do automatically with an item once it is ticked off?", "Getting Started/On Completion.md", [[31, 32]]),
  ("fact", "How many urgency points does something get that is due three days from now?", "Advanced/Urgency.md", [[90, 91]]),
  ("fact", "Which built-in preset only shows tasks from the same folder, leaving out subfolders?", "Queries/Presets.md", [[111, 111]]),
 ],
 "madetech": [
  ("howto", "I left my work laptop on the train and it's gone. What do I do now?", "guides/security/lost_or_stolen.md", [[7, 15]]),
  ("howto", "my own phone, which has company email on it, was stolen", "guides/security/lost_or_stolen.md", [[29, 33]]),
  ("howto", "I'm quitting: how do I get my computer back to the company, and who pays for shipping?", "guides/security/leavers_laptop.md", [[6, 32]]),
  ("howto", "How can I get an account for the AWS playground?", "guides/cloud/aws_sandbox.md", [[25, 28]]),
  ("howto", "configure the aws command line for the playground account", "guides/cloud/aws_sandbox.md", [[32, 45]]),
  ("howto", "I administer the sandbox and a colleague asked for access. How do I create their user?", "guides/cloud/aws_sandbox.md", [[79, 86]]),
  ("howto", "How do I get the price of my railcard back?", "guides/compensation/expenses.md", [[13, 17]]),
  ("howto", "claiming money back for having my eyes checked", "guides/compensation/expenses/eyetest.md", [[3, 6]]),
  ("howto", "I've been called to serve on a jury, what do I need to arrange?", "guides/jury_service.md", [[3, 12]]),
  ("howto", "What must I have done before I put leave into the system?", "benefits/taking_holiday.md", [[35, 41]]),
  ("howto", "I want to work from Spain for a week, what should I do about my laptop first?", "guides/security/taking-mt-laptops-abroad.md", [[3, 7]]),
  ("howto", "What are the stages if I make an official complaint about my treatment at work?", "guides/welfare/raising_an_issue.md", [[38, 43]]),
  ("howto", "How do I add a new handbook page on GitHub without using git?", "guides/contributing_to_the_handbook.md", [[9, 17]]),
  ("howto", "How does a big policy change to the handbook get approved and merged?", "guides/contributing_to_the_handbook.md", [[76, 83]]),
  ("howto", "install and register the antivirus on my Ubuntu machine", "guides/it/linux_av.md", [[108, 109], [113, 116], [127, 137]]),
  ("howto", "Make Ubuntu lock a login after too many wrong passwords (before 22.04)", "guides/it/linux_av.md", [[50, 60]]),
  ("howto", "The anonymous safety score before our retro came out low. What exercise do we run?", "team-norms/retrospectives.md", [[82, 88]]),
  ("howto", "I've just rolled off a client project; what are my first steps in the chalet?", "guides/chalet_time_policy.md", [[19, 33]]),
  ("fact", "How far in advance do I have to ask for ten days off?", "benefits/taking_holiday.md", [[18, 18]]),
  ("fact", "How much does the company put into the pension of someone at grade 12?", "benefits/pension_scheme.md", [[8, 8]]),
  ("fact", "What bonus do I get if an apprentice I recommended is hired, and when is it paid?", "guides/hiring/referral_policy.md", [[15, 15], [17, 17]]),
  ("fact", "price of an associate level AWS exam with tax", "guides/cloud/aws_certification_advice.md", [[43, 43], [46, 46]]),
  ("fact", "How much will Made Tech contribute to new glasses for screen work?", "guides/compensation/expenses/eyetest.md", [[12, 12]]),
  ("fact", "How high are the desks in Manchester?", "guides/office/officehandbook.md", [[101, 101]]),
  ("fact", "After how many sick days will my manager talk to me about it?", "guides/welfare/sick_leave.md", [[27, 27]]),
  ("fact", "Does the company help pay for a therapist I choose myself?", "guides/welfare/paid_counselling.md", [[28, 28]]),
 ],
 "blue-book": [
  ("howto", "Jellyfin logs SQLite errors after a power cut; what is the first thing to try with the lock files?", "jellyfin.md", [[167, 172]]),
  ("howto", "salvage a damaged jellyfin library.db by dumping it into a new database", "jellyfin.md", [[190, 232]]),
  ("howto", "How do I give up on the broken media library database and let Jellyfin scan everything anew?", "jellyfin.md", [[238, 242]]),
  ("howto", "Switch from Signal to Molly without losing my conversations", "signal.md", [[57, 67]]),
  ("howto", "How do I install the kubectl plugin manager?", "krew.md", [[13, 36]]),
  ("howto", "how should I clean my teeth with an electric brush?", "teeth.md", [[101, 117]]),
  ("howto", "What's the right technique for cleaning between the teeth with thread?", "teeth.md", [[208, 208], [212, 225]]),
  ("howto", "steps for boiling an egg", "cooking_basics.md", [[14, 26]]),
  ("howto", "how do I move our EKS cluster to a newer kubernetes version", "devops/aws/eks.md", [[53, 77]]),
  ("howto", "Someone overwrote a file in a versioned S3 bucket, how do I bring the earlier one back?", "devops/aws/s3.md", [[101, 124]]),
  ("howto", "major version upgrade of the postgres in my docker compose stack", "postgres.md", [[30, 60]]),
  ("howto", "How do I restore a cluster from a velero backup?", "velero.md", [[234, 287]]),
  ("howto", "use an EBS snapshot in velero that velero didn't take itself", "velero.md", [[325, 332]]),
  ("howto", "How is gitea upgraded when it was installed as a plain executable?", "gitea.md", [[609, 620]]),
  ("howto", "We have the results of an anonymous staff survey. What do we do with them?", "anonymous_feedback.md", [[161, 176]]),
  ("howto", "my laptop's touchpad reacts too slowly under linux, how can I make the pointer and the scrolling faster", "linux_snippets.md", [[215, 239]]),
  ("howto", "turn off the red nub of a ThinkPad as a normal user", "linux_snippets.md", [[247, 251]]),
  ("howto", "How do I mount a remote folder over ssh on a LibreElec box?", "libreelec.md", [[13, 31]]),
  ("howto", "load an elasticsearch index again from a snapshot", "linux/elasticsearch.md", [[95, 114]]),
  ("howto", "How do I make something become a good habit, stage by stage?", "habit_management.md", [[116, 121]]),
  ("fact", "What efficiency must a gold rated power supply have at half load?", "psu.md", [[60, 60], [65, 65]]),
  ("fact", "Which kind of shingled drive is worst for ZFS, and why?", "zfs_storage_planning.md", [[143, 147]]),
  ("fact", "How many minutes for an egg with a runny yolk?", "cooking_basics.md", [[19, 20]]),
  ("fact", "When should I get a new toothbrush?", "teeth.md", [[147, 149]]),
  ("fact", "What is meant by a quibble in a code review?", "conventional_comments.md", [[63, 63]]),
  ("fact", "Which Wake-on flag does a network card need so that a magic packet switches the computer on?", "wake_on_lan.md", [[25, 26]]),
  ("fact", "At what time of the year is guano put on plants?", "gardening.md", [[11, 11]]),
  ("fact", "How long did testing 64 GB of ECC memory take?", "memtest.md", [[13, 13]]),
  ("fact", "How long do chickpeas need to stand in water beforehand?", "cooking_basics.md", [[47, 51]]),
 ],
 "traderplus": [
  ("howto", "How do I put the mod on my DayZ server by hand?", INST, [[41, 58], [62, 66]]),
  ("howto", "What is needed to turn my car into a receipt?", GARAGE, [[121, 130]]),
  ("howto", "I have the car as a piece of paper, how do I get it out again?", GARAGE, [[136, 144]]),
  ("howto", "make the server work out the price coefficients by itself", PRICE, [[145, 153]]),
  ("howto", "How do I set up permits so that only players who own one can use a certain trader?", FAQ, [[318, 330]]),
  ("howto", "How do I let players purchase licenses from a trader?", PRICE, [[207, 229]]),
  ("howto", "adding a new car with its parts to the config", VEH, [[61, 84]]),
  ("howto", "Players cannot sell any more because stock is full; how do I empty it automatically?", FAQ, [[242, 248]]),
  ("howto", "I'd like to add a bill with a value that isn't in the list of currencies yet, for example 25", GEN, [[282, 300]]),
  ("howto", "How do I make a trader take only dollars?", IDS, [[69, 88]]),
  ("howto", "The money is taken but the player doesn't receive the thing they bought. How do I fix it?", FAQ, [[23, 41]]),
  ("howto", "The trader refuses to buy my vehicle paper, what can I do?", FAQ, [[296, 298]]),
  ("howto", "The shop window is empty after setting everything up, no goods are listed", FAQ, [[256, 258]]),
  ("fact", "What's the largest sum a bank account can be allowed to hold?", BANK, [[69, 69]]),
  ("fact", "how many vehicles may each player park, by default", GARAGE, [[46, 48]]),
  ("fact", "Which values does the option for filling up traders' stock at a restart have, and what do they do?", PRICE, [[26, 30]]),
  ("fact", "Does my car stay insured if I park it in the garage?", INS, [[15, 15]]),
  ("fact", "Which of Dr. Jones' files cannot be taken over?", JONES, [[24, 26]]),
  ("fact", "Is the delay for kicking idle players given in seconds or minutes?", ZONE, [[92, 94]]),
  ("fact", "What's the Discord name of Chubby, who contributes to the wiki?", CONTRIB + "Chubby 60be6e171278411b8b573a614f030bfe.md", [[5, 5]]),
  ("fact", "Can several traders sell from one common stock?", GEN, [[360, 360]]),
 ],
}
out = []
for corpus, questions in QUESTIONS.items():
    for kind, question, path, lines in questions:
        text = (HERE / corpus / path).read_text(encoding="utf-8").splitlines()
        assert all(1 <= a <= b <= len(text) for a, b in lines), (path, lines)
        out.append({"corpus": corpus, "question": question, "path": path, "lines": lines, "kind": kind})
        if "--show" in sys.argv:
            print(f"\n##### [{corpus}/{kind}] {question}\n--- {path[-60:]} {lines}")
            for a, b in lines:
                print("\n".join(f"{n:4} {text[n-1][:110]}" for n in range(a, b + 1)), "\n     ..")
(HERE / "notes.jsonl").write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in out), encoding="utf-8")
print(len(out), {c: len(q) for c, q in QUESTIONS.items()}, {k: sum(o["kind"] == k for o in out) for k in ("howto", "fact")})
